"""How many nodes the budgets of NodePools leave, and when."""

import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.disruption.allowances import disruptions_left, is_active
from shared.disruption.consolidation import DisruptionMethod
from shared.disruption.evaluation import DisruptionInput
from shared.disruption.fingerprint import fingerprint
from shared.disruption.settings import DisruptionSettings
from shared.manifests.custom_resources.pool_lifetimes import read_lifetime
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason
from tests.builders import NOW, OTHER_SHAPE
from tests.karpenter_cases.v1.disruption.scenes import of_pool, saving, scene, some
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.disruption.clusters import PACKING, changed, looked, on
from tests.unit.manifests.documents import node_pool

EMPTY, DRIFTED, UNUSED = (
    DisruptionReason.EMPTY,
    DisruptionReason.DRIFTED,
    DisruptionReason.UNDERUTILIZED,
)
ALL = (EMPTY, DRIFTED, UNUSED)
TUESDAY = datetime(2026, 11, 24, 12, 30, tzinfo=UTC)
NIGHT = {"schedule": "0 1 * * *", "duration": "4h"}
NOON = {"schedule": "0 12 * * *", "duration": "4h"}


def left(
    *budgets: dict[str, Any],
    nodes: tuple[Node, ...] = some(10),
    reasons: tuple[DisruptionReason, ...] = ALL,
    now: datetime = TUESDAY,
) -> list[int | None]:
    """Return how many nodes may go for each reason, as timers read the NodePool."""
    owner = read_lifetime(node_pool(disruption={"budgets": list(budgets)}))
    return [disruptions_left(owner, nodes, reason, now, frozenset()) for reason in reasons]


def test_nothing_for_all_reasons_is_nothing_for_each() -> None:
    assert left({"nodes": "0"}) == [0, 0, 0]


def test_without_an_active_budget_there_is_no_limit() -> None:
    assert left({"nodes": "0", **NIGHT}) == [None, None, None]


def test_a_budget_for_a_reason_counts_while_it_is_active() -> None:
    assert left({"nodes": "5"}, {"nodes": "1", "reasons": ["Empty"], **NIGHT}) == [5, 5, 5]
    assert left({"nodes": "5"}, {"nodes": "1", "reasons": ["Empty"], **NOON}) == [1, 5, 5]


def test_a_budget_without_reasons_is_for_each() -> None:
    assert left({"nodes": "3"}) == [3, 3, 3]


def test_the_smallest_counts_for_each_reason() -> None:
    budgets = ({"nodes": "4"}, {"nodes": "2", "reasons": ["Empty", "Drifted"]}, {"nodes": "30%"})
    assert left(*budgets) == [2, 2, 3]


@pytest.mark.parametrize(
    "broken",
    [{"nodes": "1", "schedule": "0 9 * * 7", "duration": "8h"}, {"nodes": "some"}],
    ids=["schedule", "nodes"],
)
def test_what_cannot_be_read_allows_nothing(broken: dict[str, Any]) -> None:
    assert left(broken, {"nodes": "5"}) == [0, 0, 0]
    assert left({**broken, "reasons": ["Empty"]}, {"nodes": "5"}) == [0, 0, 0]


def test_a_share_is_rounded_up() -> None:
    found = [left({"nodes": "10%"}, nodes=some(count))[0] for count in (1, 3, 10, 11)]
    assert found == [1, 1, 1, 2]
    assert left({"nodes": "7"}, nodes=some(3))[0] == 7


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_times_are_utc_on_any_host(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        found = left({"nodes": "0", "schedule": "0 12 * * *", "duration": "1h"})
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert found == [0, 0, 0]
    assert "TZ" not in os.environ


@pytest.mark.parametrize(
    ("schedule", "duration", "active"),
    [
        ("0 12 * * *", "31m", True),
        ("0 12 * * *", "30m", False),
        ("30 12 * * *", "1m", True),
        ("0 * * * *", "2h", True),
    ],
    ids=["middle", "after", "hit", "longer-than-its-interval"],
)
def test_a_budget_is_active_from_its_hit_to_its_end(
    schedule: str, duration: str, *, active: bool
) -> None:
    found = left({"nodes": "0", "schedule": schedule, "duration": duration})
    assert (found == [0, 0, 0]) is active


def test_a_budget_without_a_schedule_is_always_active() -> None:
    (budget,) = saving(disruption={"budgets": [{"nodes": "1"}]}).budgets or ()
    for hours in range(0, 168, 7):
        assert is_active(budget, TUESDAY + timedelta(hours=hours))


def test_nodes_of_others_and_young_ones_are_not_counted() -> None:
    nodes = (
        *some(2),
        of_pool("foreign", finalizers=()),
        of_pool("young", labels={keys.INITIALIZED: ""}),
        of_pool("other", owner="other"),
    )
    assert left({"nodes": "50%"}, nodes=nodes)[0] == 1
    assert left({"nodes": "100%"}, nodes=nodes)[0] == 2


def test_nodes_that_go_or_are_not_ready_use_it_up() -> None:
    nodes = (*some(8), of_pool("late", ready=False), of_pool("going", deletion_at=NOW))
    assert left({"nodes": "3"}, nodes=nodes) == [1, 1, 1]
    assert left({"nodes": "1"}, nodes=nodes) == [0, 0, 0]


def limited(*budgets: dict[str, Any], name: str = "default", **spec: Any) -> Any:
    return saving(name, disruption={"budgets": list(budgets)}, **spec)


@pytest.mark.parametrize(("nodes", "count"), [("3", 3), ("100%", 10)])
def test_so_many_of_ten_empty_nodes_go(nodes: str, count: int) -> None:
    found = changed(scene(*some(10), pools=(limited({"nodes": nodes}),)), budget_percent=1)
    assert (found.method, len(found.remove)) == (DisruptionMethod.EMPTY, count)
    held = looked(scene(*some(10), pools=(limited({"nodes": "0"}),)))
    assert held.change is None


def test_two_of_each_pool_go() -> None:
    pools = tuple(limited({"nodes": "2"}, name=name) for name in ("red", "blue"))
    nodes = [of_pool(f"{name}{n}", owner=name) for name in ("red", "blue") for n in range(4)]
    found = changed(scene(*nodes, pools=pools))
    assert sorted(name[:-1] for name in found.remove) == ["blue", "blue", "red", "red"]


def test_consolidation_keeps_to_it() -> None:
    used = tuple(on(f"n{number}", cpu=100) for number in range(10))
    three = changed(scene(*some(10), bound=used, pools=(limited({"nodes": "3"}),)))
    assert 1 <= len(three.remove) <= 3
    assert len(changed(scene(*some(10), bound=used, pools=(limited({"nodes": "1"}),))).remove) == 1


def test_a_node_that_drifts_leaves_two_of_three() -> None:
    owner = limited({"nodes": "3", "reasons": ["Drifted"]}, labels={"team": "new"})
    old: dict[str, Any] = {"annotations": OTHER_SHAPE}
    nodes = (*some(4, **old), of_pool("going", deletion_at=NOW, **old))
    assert len(changed(scene(*nodes, pools=(owner,))).remove) == 2


def test_a_scene_that_a_budget_held_is_looked_at_again() -> None:
    def print_of(nodes: str) -> str:
        seen = scene(*some(4), pools=(limited({"nodes": nodes}),))
        settings = DisruptionSettings()
        return fingerprint(
            DisruptionInput(snapshot=seen, budgets=(), settings=settings, packing=PACKING)
        )

    assert print_of("0") != print_of("2") == print_of("50%")
    held = looked(scene(*some(4), pools=(limited({"nodes": "0"}),)))
    assert held.reason == "the budget of disruptions is used up"


@pytest.mark.parametrize(
    ("budgets", "told"),
    [
        ([{"nodes": "0"}], "as Underutilized or Empty or Drifted"),
        ([{"nodes": "0", "reasons": ["Drifted"]}], "as Drifted"),
        ([{"nodes": "1"}], ""),
        ([{"nodes": "0", "schedule": "0 9 * * *", "duration": "1h"}], ""),
    ],
    ids=["all", "one-reason", "one-node", "another-hour"],
)
def test_a_budget_of_nothing_over_nodes_is_told(budgets: list[dict[str, Any]], told: str) -> None:
    there = world(named_pool(disruption={"budgets": budgets}))
    there.provision(look=True)
    assert there.messages("DisruptionBlocked", "NodePool") == []
    stand(there)
    there.provision(look=True)
    found = there.messages("DisruptionBlocked", "NodePool")
    assert [message.endswith(told) for message in found] == ([True] if told else [])
