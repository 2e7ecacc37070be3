"""Nodes of NodePools: replaced ahead of their expiration, and drift under a grace period."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.drift import drift_of, end_stamp
from shared.disruption.evaluation import DisruptionCause
from shared.disruption.evaluation_due import needs_evaluation, replacement_due_in
from shared.disruption.expiration import forced_removal_in, time_to_expiration
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import NodeBudget
from shared.model.policy import KarpenterBehavior
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from tests.builders import NOW, node_of, provisioner
from tests.unit.disruption.clusters import LATER, changed, cluster, looked, on

MINUTE = timedelta(minutes=1)
KEPT = {keys.DO_NOT_DISRUPT: "true"}


def pool(**more: Any) -> Provisioner:
    ttl = LATER - NOW + 5 * MINUTE
    return provisioner(**{"kind": OwnerKind.NODE_POOL, "ttl_until_expired": ttl, **more})


def of_pool(name: str, **more: Any) -> Node:
    annotations = {keys.SLOT: "p/g/0", **more.pop("annotations", {})}
    labels = {keys.NODE_POOL: "default", keys.INITIALIZED: "true"}
    return node_of(name, labels=labels, annotations=annotations, **more)


def test_a_replacement_is_begun_ten_minutes_ahead_and_not_once_it_has_expired() -> None:
    node, owner = of_pool("a"), pool()
    assert replacement_due_in(node, owner, LATER) == -5 * MINUTE
    assert replacement_due_in(node, owner, NOW) == LATER - NOW - 5 * MINUTE
    assert replacement_due_in(node, owner, LATER + 5 * MINUTE) is None
    assert replacement_due_in(node_of("a"), provisioner(), LATER) is None
    assert needs_evaluation([node], {"default": owner}, LATER)


def test_nodes_that_expire_together_are_replaced_together_within_the_budget() -> None:
    nodes = [of_pool(name) for name in "abc"]
    bound = tuple(on(name) for name in "abc")
    seen = cluster(*nodes, bound=bound, provisioners=(pool(budgets=(NodeBudget(nodes=2),)),))
    found = changed(seen)
    assert (found.cause, found.remove) == (DisruptionCause.EXPIRATION, ("a", "b"))
    assert found.why == "it will soon be older than expireAfter"
    closed = cluster(*nodes, bound=bound, provisioners=(pool(budgets=(NodeBudget(nodes=0),)),))
    assert looked(closed).change is None


def test_where_they_cannot_be_replaced_together_one_is() -> None:
    bound = (on("a"), on("b", extra={"example.com/rare": 1}))
    seen = cluster(of_pool("a"), of_pool("b"), bound=bound, provisioners=(pool(),))
    assert changed(seen).remove == ("a",)


def test_what_holds_a_node_does_not_hold_its_replacement() -> None:
    seen = cluster(of_pool("a"), bound=(on("a", annotations=KEPT),), provisioners=(pool(),))
    assert looked(seen).change is not None
    of_provisioner = provisioner(ttl_until_expired=MINUTE)
    held = cluster(node_of("a"), bound=(on("a", annotations=KEPT),), provisioners=(of_provisioner,))
    assert looked(held).change is None


def test_drained_nodes_do_not_hold_those_of_an_owner_with_budgets() -> None:
    going = of_pool("b", deletion_at=NOW, annotations={keys.REMOVAL_REASON: "expiration"})
    bound = (on("a"), on("b"))
    limited = pool(budgets=(NodeBudget(nodes=2),))
    assert looked(cluster(of_pool("a"), going, bound=bound, provisioners=(limited,))).change
    free = cluster(of_pool("a"), going, bound=bound, provisioners=(pool(),))
    assert looked(free).skipped == {"a": "another node is drained first"}


def test_nodes_that_live_for_minutes_are_replaced_a_quarter_of_that_ahead() -> None:
    short = pool(ttl_until_expired=8 * MINUTE)
    assert replacement_due_in(of_pool("a"), short, NOW) == 6 * MINUTE


def test_a_lowered_age_holds_for_replacements_and_not_for_removals_by_force() -> None:
    now, owner = NOW + timedelta(days=2), pool(ttl_until_expired=timedelta(days=1))
    node = of_pool("a", annotations=end_stamp(pool(ttl_until_expired=timedelta(days=30))))
    assert forced_removal_in(node, owner, now) == timedelta(days=28)
    assert replacement_due_in(node, owner, now) == -timedelta(days=1) - 10 * MINUTE
    raised = pool(ttl_until_expired=timedelta(days=40))
    assert forced_removal_in(node, raised, now) == timedelta(days=38)


@pytest.mark.parametrize(
    ("written", "life"),
    [
        pytest.param("Never", None, id="never"),
        pytest.param("7200", timedelta(hours=2), id="two hours"),
        pytest.param("soon", timedelta(hours=1), id="not written by Dovetail"),
    ],
)
def test_as_in_karpenter_a_node_lives_as_long_as_was_said_at_its_launch(
    written: str, life: timedelta | None
) -> None:
    ways = frozenset({KarpenterBehavior.LIFETIME})
    owner = pool(ttl_until_expired=timedelta(hours=1), as_karpenter=ways)
    node = of_pool("a", annotations={keys.EXPIRE_AFTER: written})
    assert time_to_expiration(node, owner, NOW) == forced_removal_in(node, owner, NOW) == life
    changed = "expireAfter of nodepool pool has changed" if written != "soon" else ""
    assert drift_of(node, owner).replace(owner.name, "pool") == changed
    assert drift_of(node, replace(owner, as_karpenter=frozenset())) == ""


def test_as_in_karpenter_nothing_is_replaced_ahead_of_its_expiration() -> None:
    owner = pool(as_karpenter=frozenset({KarpenterBehavior.EXPIRATION}))
    assert owner.replacement_lead_time == timedelta(0)
    assert replacement_due_in(of_pool("a"), owner, NOW + timedelta(days=1)) is None


def test_nodes_that_may_live_longer_are_replaced_one_by_one_unless_a_pod_holds_them() -> None:
    lived = {keys.EXPIRE_AFTER: "8640000"}
    nodes = [of_pool(name, annotations=lived) for name in "abc"]
    bound = (on("a", annotations=KEPT), on("b"), on("c"))
    seen = cluster(*nodes, bound=bound, provisioners=(pool(ttl_until_expired=MINUTE),))
    found = changed(seen)
    assert (found.remove, found.why) == (("b",), "it is older than expireAfter")


def test_a_lowered_age_replaces_no_node_that_is_not_to_be_disrupted() -> None:
    """An age that it had from its launch does."""
    owner = pool(ttl_until_expired=MINUTE)
    kept = of_pool("a", annotations={keys.EXPIRE_AFTER: "8640000", **KEPT})
    found = looked(cluster(kept, bound=(on("a"),), provisioners=(owner,)))
    forbids = {"a": "its annotation karpenter.sh/do-not-disrupt forbids it"}
    assert (found.change, found.skipped) == (None, forbids)
    due = of_pool("a", annotations=KEPT)
    assert looked(cluster(due, bound=(on("a"),), provisioners=(pool(),))).change is not None


@pytest.mark.parametrize(
    ("written", "forced"),
    [
        pytest.param("Never", None, id="never"),
        pytest.param("", 8 * MINUTE, id="nothing"),
        pytest.param("480.5", 8 * MINUTE, id="no whole number"),
        pytest.param("\u0664\u0668\u0660\u0660", 8 * MINUTE, id="digits of another script"),
        pytest.param("9" * 11, 8 * MINUTE, id="more than centuries"),
        pytest.param("600", 10 * MINUTE, id="seconds"),
    ],
)
def test_what_is_written_on_a_node_counts_where_it_is_an_age(
    written: str, forced: timedelta | None
) -> None:
    node = of_pool("a", annotations={keys.EXPIRE_AFTER: written})
    assert forced_removal_in(node, pool(ttl_until_expired=8 * MINUTE), NOW) == forced


def test_the_age_at_launch_is_written_for_nodes_that_expire_by_force() -> None:
    assert end_stamp(pool(ttl_until_expired=MINUTE)) == {keys.EXPIRE_AFTER: "60"}
    assert end_stamp(pool(ttl_until_expired=None)) == {keys.EXPIRE_AFTER: "Never"}
    assert end_stamp(provisioner(ttl_until_expired=MINUTE)) == {}
