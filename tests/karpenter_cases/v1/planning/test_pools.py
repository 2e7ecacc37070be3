"""Which NodePools pods get nodes of, and how many."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.requirements import Operator, Requirement, Requirements
from tests import builders as make
from tests.karpenter_cases.scheduling.market import (
    LARGE,
    MEDIUM,
    SMALL,
    TINY,
    ZONES,
    machine,
)
from tests.karpenter_cases.scheduling.writing import TEAM, pods, taint
from tests.karpenter_cases.v1.planning.pools import one, planned, pool
from tests.karpenter_cases.v1.reading import asks
from tests.unit.manifests.documents import wants

CPU = keys.INSTANCE_CPU
PLAIN = (TINY, SMALL, MEDIUM, LARGE)
APART = {"cpu": "1750m"}


def test_ranges_of_pools_and_pods_are_honoured() -> None:
    between = pool("default", (CPU, "Gte", "4"), (CPU, "Lte", "8"))
    assert one({"cpu": "100m"}, pools=(between,), market=PLAIN).values(CPU) <= {"4", "8"}
    assert one({"cpu": "9"}, pools=(between,), market=PLAIN).new == ()
    above = one({"required": [[(CPU, "Gt", "4"), (CPU, "Lt", "16")]]}, market=PLAIN)
    assert above.values(CPU) == {"8"}


def test_bounds_around_one_number_leave_it() -> None:
    exact = pool("default", (CPU, "Gte", "8"), (CPU, "Lte", "8"))
    assert one({"cpu": "100m"}, pools=(exact,), market=PLAIN).values(CPU) == {"8"}
    nothing = asks(wants(CPU, "Gt", "5"), wants(CPU, "Lt", "6"))
    assert [line.partition(": ")[2] for line in nothing] == [
        "no value satisfies all of these; loosen one"
    ]


def test_nothing_is_above_the_largest_number() -> None:
    above = Requirement.parse(CPU, "Gt", [str(2**63 - 1)])
    assert Requirements.of([above]).empty_keys() == (CPU,)
    assert not above.has_value()
    (refusal,) = asks(wants(CPU, "Gt", str(2**63 - 1)))
    assert "no value satisfies all of these" in refusal


def test_bounds_are_said_with_both_their_ends() -> None:
    found = pool("default", (CPU, "Gt", "3"), (CPU, "Lt", "9")).requirements.get(CPU)
    written = [
        Requirement.parse(CPU, operator, [value], tuple(Operator))
        for operator, value in (("Gte", "4"), ("Lte", "8"))
    ]
    assert found == Requirements.of(written).get(CPU)
    assert found is not None
    assert found.describe() == f"{CPU} >= 4 and <= 8"


def test_a_label_of_kubernetes_may_be_asked_for() -> None:
    key = "node.kubernetes.io/role"
    outcome = one({"selector": {key: "web"}}, pools=(pool(labels={key: "web"}),))
    assert outcome.values(key) == {"web"}
    assert one({"selector": {key: "web"}}).new == ()


def test_of_equal_weights_the_order_is_the_same_each_time() -> None:
    several = tuple(pool(name) for name in ("b", "a", "c"))
    first = planned(*pods(3, **APART), pools=several)
    assert len({first.by(name) for name in first.homes}) == 1
    again = planned(*pods(3, **APART), pools=several[::-1])
    assert {again.by(name) for name in again.homes} == {first.by(name) for name in first.homes}
    heavy = (*several, pool("heavy", weight=2))
    assert one(pools=heavy).by() == "heavy"
    assert one({"selector": {keys.NODE_POOL: "c"}}, pools=heavy).by() == "c"


def test_a_pool_that_pods_avoid_is_taken_last() -> None:
    avoided = pool("avoided", weight=9, taints=[taint("old", "PreferNoSchedule")])
    assert one(pools=(avoided, pool("plain"))).by() == "plain"
    assert one(pools=(avoided,)).by() == "avoided"


def test_a_pool_that_is_being_deleted_makes_no_nodes() -> None:
    leaving = pool("leaving", weight=9, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert one(pools=(leaving, pool("stays"))).by() == "stays"
    assert one(pools=(leaving,)).new == ()


def capacity(outcome: Any, resource: str = "cpu") -> int:
    return sum(planned_node.largest_capacity[resource] for planned_node in outcome.new)


@pytest.mark.parametrize(
    ("limits", "words", "launched", "waiting"),
    [
        ({"cpu": "8"}, APART, 2, 0),
        ({"cpu": "4"}, APART, 2, 0),
        ({"cpu": "3"}, APART, 1, 1),
        ({"cpu": "1"}, APART, 0, 2),
        ({"memory": "4Gi"}, APART, 1, 1),
    ],
    ids=["room", "met", "partly", "exceeded", "memory"],
)
def test_only_what_fits_the_limits_is_launched(
    limits: Any, words: Any, launched: int, waiting: int
) -> None:
    outcome = planned(*pods(2, **words), pools=(pool(limits=limits),), market=(TINY,))
    assert (len(outcome.new), len(outcome.pending)) == (launched, waiting)


def test_a_limit_on_devices_is_a_limit() -> None:
    words: dict[str, Any] = {"extra": {"nvidia.com/gpu": "2"}}
    outcome = planned(*pods(2, **words), pools=(pool(limits={"nvidia.com/gpu": "2"}),))
    assert (len(outcome.new), len(outcome.pending)) == (1, 1)


def test_pods_that_nothing_can_hold_are_told_why() -> None:
    conflict = one(
        {"selector": {keys.ARCH: "arm64"}}, pools=(pool("default", (keys.ARCH, "In", "amd64")),)
    )
    assert keys.ARCH in conflict.pending["a"]
    zones = one({"required": [[(keys.ZONE, "In", "zone-x")]]})
    assert keys.ZONE in zones.pending["a"]
    nothing = one(pools=(pool("default", (keys.INSTANCE_TYPE, "In", "m5.unknown")),))
    assert "requirements leave no instance type" in nothing.pending["a"]


def test_on_demand_is_launched_where_it_is_cheaper_than_spot() -> None:
    dear_spot = (machine("m5.tiny", 2, 4, 100, spot_price=150),)
    outcome = one(market=dear_spot)
    assert outcome.options()[0].offering.capacity_type == "on-demand"
    assert one(market=(TINY,)).options()[0].offering.capacity_type == "spot"


def test_a_label_with_one_value_is_on_the_node() -> None:
    outcome = one(pools=(pool("default", (TEAM, "In", "red")),))
    assert outcome.values(TEAM) == {"red"}


def test_a_label_with_any_value_gets_one() -> None:
    outcome = one({"required": [[(TEAM, "Exists")]]}, pools=(pool("default", (TEAM, "Exists")),))
    (value,) = outcome.values(TEAM)
    assert value
    above = one({"required": [[(TEAM, "Exists")]]}, pools=(pool("default", (TEAM, "Gt", "5")),))
    (number,) = above.values(TEAM)
    assert int(number or 0) > 5


def test_facts_of_machines_are_no_labels_before_the_launch() -> None:
    outcome = one(pools=(pool("default", (keys.INSTANCE_TYPE, "In", "m5.tiny", "m5.small")),))
    (planned_node,) = outcome.new
    assert keys.INSTANCE_TYPE not in planned_node.labels


def test_a_class_without_a_subnet_leaves_pods_to_another_pool() -> None:
    sites = (make.site("a-nowhere", (), reason="finds no subnet"), make.site("works", ZONES))
    pools = (pool("a-nowhere", weight=9), pool("works"))
    assert one(pools=pools, sites=sites).by() == "works"
