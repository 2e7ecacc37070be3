"""How many nodes budgets leave, and when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.disruption.allowances import NO_BUDGETS, allowances, disruptions_left, is_active
from shared.disruption.evaluation import OngoingChanges
from shared.model import labels as keys
from shared.model.dialect import V1, V1ALPHA5
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason, NodeBudget
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from tests.builders import NOW, node_of, provisioner
from tests.unit.disruption.clusters import AGED, changed, cluster, looked, on

HOUR = timedelta(hours=1)
EMPTY, DRIFTED = DisruptionReason.EMPTY, DisruptionReason.DRIFTED
TUESDAY = datetime(2026, 11, 24, 12, 30, tzinfo=UTC)


def owner(*budgets: NodeBudget, **more: Any) -> Provisioner:
    return provisioner(budgets=budgets, **more)


def joined(name: str, **more: Any) -> Node:
    return node_of(name, labels={keys.INITIALIZED: "true"}, **more)


def some(count: int) -> list[Node]:
    return [joined(f"n{number}") for number in range(count)]


def left(
    nodes: list[Node],
    *budgets: NodeBudget,
    reason: DisruptionReason | None = EMPTY,
    going: frozenset[str] = frozenset(),
) -> int | None:
    return disruptions_left(owner(*budgets), nodes, reason, TUESDAY, going)


@pytest.mark.parametrize(
    ("schedule", "span", "active"),
    [
        ("", 0, True),
        ("0 12 * * *", 60, True),
        ("30 12 * * *", 1, True),
        ("0 12 * * *", 30, False),
        ("0 12 * * *", 31, True),
        ("31 12 * * *", 60, False),
        ("0 0 * * 1-5", 24 * 60, True),
        ("0 0 * * 0,6", 24 * 60, False),
        # A day of the month and a weekday, each given: either counts.
        ("0 0 24 * 0", 24 * 60, True),
        ("0 0 1-31/2 * 2", 24 * 60, True),
        ("0 0 1-31/2 * 3", 24 * 60, False),
        ("0 0 30 2 *", 60, True),
    ],
)
def test_a_budget_is_active_from_its_schedule_until_its_end(
    schedule: str, span: int, *, active: bool
) -> None:
    budget = NodeBudget(nodes=0, schedule=schedule, duration=timedelta(minutes=span))
    assert is_active(budget, TUESDAY) is active


def test_the_smallest_budget_for_the_reason_counts() -> None:
    budgets = (NodeBudget(nodes=3), NodeBudget(nodes=1, reasons=(EMPTY,)))
    assert left(some(9), *budgets) == 1
    assert left(some(9), *budgets, reason=DRIFTED) == 3
    assert left(some(9), *budgets, reason=None) == 3
    assert left(some(9), budgets[1], reason=DRIFTED) is None
    assert left(some(9)) is None


@pytest.mark.parametrize(("minutes", "allowed"), [(4, 0), (5, 1)])
def test_a_node_that_has_not_been_ready_for_five_minutes_holds_no_other(
    minutes: int, allowed: int
) -> None:
    """Of three nodes 10 % is one, which the dead one would use up for as long as it stands."""
    lost = joined("lost", ready=None, ready_changed_at=TUESDAY - timedelta(minutes=minutes))
    assert left([*some(2), lost], NodeBudget(percent=10)) == allowed
    going = replace(lost, deletion_at=TUESDAY)
    assert left([*some(2), going], NodeBudget(percent=10)) == 0


def test_each_owner_has_its_own_and_others_share_the_settings() -> None:
    limited = owner(NodeBudget(nodes=1))
    free = provisioner("free")
    nodes = [
        *some(3),
        *(node_of(f"f{number}", labels={keys.PROVISIONER_NAME: "free"}) for number in range(3)),
    ]
    found = allowances([limited, free], nodes, TUESDAY, ())

    class Held:
        def __init__(self, node: Node) -> None:
            self.node = node

    held = [Held(node) for node in nodes]
    names = [entry.node.name for entry in found.within(held, EMPTY, 2)]
    assert names == ["n0", "f0", "f1"]
    assert len(found.within(held, EMPTY)) == 4
    assert len(NO_BUDGETS.within(held, EMPTY)) == 6


SAVING = {"consolidation": True}


ASLEEP = NodeBudget(nodes=1, schedule="0 0 30 6 *", duration=HOUR)
OF_DRIFT = NodeBudget(nodes=1, reasons=(DRIFTED,))


@pytest.mark.parametrize(
    ("budgets", "of_provisioner", "of_node_pool"),
    [
        ((), 20, 20),
        ((OF_DRIFT,), 2, 20),
        ((ASLEEP,), 2, 20),
        ((NodeBudget(percent=100), OF_DRIFT), 20, 20),
        ((NodeBudget(nodes=15),), 15, 15),
        (None, 2, 2),
    ],
    ids=("an empty list", "another reason", "another time", "all", "a number", "none"),
)
def test_what_no_budget_of_a_provisioner_limits_now_stays_within_the_settings(
    budgets: tuple[NodeBudget, ...] | None, of_provisioner: int, of_node_pool: int
) -> None:
    """A NodePool's, which always has some, are counted as in Karpenter."""
    removed = []
    for dialect, label in ((V1ALPHA5, keys.PROVISIONER_NAME), (V1, keys.NODE_POOL)):
        given = dialect.budgets if budgets is None else budgets
        own = provisioner(kind=dialect.owner_kind, budgets=given, consolidation=True)
        labels = {keys.INITIALIZED: "true", label: "default"}
        nodes = [node_of(f"n{number}", labels=labels) for number in range(20)]
        found = looked(cluster(*nodes, provisioners=(own,)), budget_percent=10).change
        removed.append(0 if found is None else len(found.remove))
    assert removed == [of_provisioner, of_node_pool]


def test_a_budget_for_empty_nodes_leaves_the_others_one_at_a_time() -> None:
    """While a node is drained, a budget that does not name expiration opens it no second one."""
    of_empty = owner(NodeBudget(nodes=0, reasons=(EMPTY,)), ttl_until_expired=HOUR)
    drained = joined("drained", deletion_at=NOW, annotations={keys.REMOVAL_REASON: "expiration"})
    used = (on("drained"), on("due"))
    found = looked(cluster(drained, joined("due"), bound=used, provisioners=(of_empty,)))
    assert found.skipped == {"due": "another node is drained first"}


def test_an_empty_node_that_its_budget_holds_is_not_removed_as_underused() -> None:
    budgets = (NodeBudget(nodes=0, reasons=(EMPTY,)),)
    used = [on(f"n{number}") for number in (1, 2)]
    seen = cluster(*some(3), bound=tuple(used), provisioners=(owner(*budgets, **SAVING),))
    assert "n0" not in changed(seen).remove


def test_a_node_that_is_due_waits_for_its_budget() -> None:
    held = owner(NodeBudget(nodes=0), ttl_until_expired=HOUR)
    seen = cluster(node_of("a"), node_of("b"), bound=(on("a"),), provisioners=(held,))
    found = looked(seen)
    assert found.change is None
    assert found.skipped == dict.fromkeys(
        ("a", "b"), "the disruption budgets of default allow none"
    )
    drifted = owner(NodeBudget(nodes=0, reasons=(DRIFTED,)), ttl_until_expired=HOUR)
    assert looked(cluster(node_of("a"), provisioners=(drifted,))).change is not None
    assert looked(cluster(node_of("a"), provisioners=(AGED,))).change is not None


def test_nodes_that_timers_are_about_to_remove_use_it_up() -> None:
    one = owner(NodeBudget(nodes=1), **SAVING)
    seen = cluster(*some(3), provisioners=(one,))
    pace = OngoingChanges(permitted=frozenset({"uid-n0"}))
    assert looked(seen, pace).reason == "the budget of disruptions is used up"


def test_nodes_of_an_owner_without_a_budget_left_are_not_tried() -> None:
    labels = {keys.PROVISIONER_NAME: "free", keys.INITIALIZED: "true"}
    nodes = (joined("a"), node_of("b", labels=labels), node_of("c", labels=labels))
    held, free = owner(NodeBudget(nodes=0), **SAVING), provisioner("free", **SAVING)
    used = tuple(on(name) for name in "abc")
    assert "a" not in changed(cluster(*nodes, bound=used, provisioners=(held, free))).remove
