"""A least number of values: options of a launch offer as many as a NodePool asks for."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from tests.builders import GIB, instance_type, pod, snapshot
from tests.karpenter_cases.lifecycle.births import bought, request
from tests.karpenter_cases.scheduling.market import LARGE, MEDIUM, SMALL, TINY
from tests.karpenter_cases.v1.disruption.scenes import of_pool, saving, scene
from tests.karpenter_cases.v1.planning.pools import one, pool
from tests.karpenter_cases.v1.reading import pool_of
from tests.karpenter_cases.v1.worlds import AMD, ON_DEMAND, named_pool, world
from tests.unit.disruption.clusters import looked, on
from tests.unit.manifests.documents import wants

TYPE, CPU, ZONE = keys.INSTANCE_TYPE, keys.INSTANCE_CPU, keys.ZONE
BOUGHT = (keys.CAPACITY_TYPE, "In", "on-demand")
PLAIN = (TINY, SMALL, MEDIUM, LARGE)
NAMES = tuple(known.name for known in PLAIN)


def offered(outcome: Any, key: str = TYPE) -> set[Any]:
    assert outcome.new, outcome.pending
    return {value for value in outcome.values(key) if value is not None}


def least(key: str, count: int, *more: Any, operator: str = "Exists", **words: Any) -> Any:
    """Return a NodePool that asks for so many values of a key."""
    asked = (key, operator, *more)
    return pool("default", asked, least={key: count}, **words)


def test_two_types_are_in_the_plan_and_in_the_fleet() -> None:
    owner = least(TYPE, 2, *NAMES, operator="In")
    assert len(offered(one(pools=(owner,), market=PLAIN))) >= 2
    names = ["m5.large", "m5.xlarge"]
    asked = {**wants(TYPE, "In", *names), "minValues": 2}
    there = bought(world(named_pool(spec={"requirements": [AMD, ON_DEMAND, asked]})))
    found = {
        override["InstanceType"]
        for config in request(there)["LaunchTemplateConfigs"]
        for override in config["Overrides"]
    }
    assert found == set(names)


def test_bounds_with_a_least_number_are_met_or_the_pod_waits() -> None:
    three = least(CPU, 3, "2", operator="Gte")
    assert len(offered(one(pools=(three,), market=PLAIN), CPU)) >= 3
    few = least(CPU, 3, "8", operator="Gte")
    outcome = one(pools=(few,), market=PLAIN)
    assert outcome.new == ()
    assert "minValues" in outcome.pending["a"]


@pytest.mark.parametrize("other", [("NotIn", "m5.unknown"), ("Exists",)], ids=["not-in", "exists"])
def test_of_several_on_a_key_the_largest_counts(other: tuple[str, ...]) -> None:
    asked = [
        {**wants(TYPE, "In", *NAMES), "minValues": 1},
        {**wants(TYPE, other[0], *other[1:]), "minValues": 3},
    ]
    owner = pool_of({"requirements": asked})
    assert owner.least_values == {TYPE: 3}
    assert len(offered(one(pools=(owner,), market=PLAIN))) >= 3


def test_of_several_keys_each_counts() -> None:
    owner = pool("default", (TYPE, "Exists"), (CPU, "Exists"), least={TYPE: 2, CPU: 3})
    outcome = one(pools=(owner,), market=PLAIN)
    assert len(offered(outcome)) >= 2
    assert len(offered(outcome, CPU)) >= 3


def test_not_met_after_the_list_is_cut_there_is_no_capacity() -> None:
    owner = least(TYPE, 4)
    seen = snapshot(pod(), provisioners=(owner,), instance_types=PLAIN_TYPES)
    assert decide(seen, PackingSettings(improve_iterations=2)).nodes
    assert decide(seen, PackingSettings(improve_iterations=2, max_options=3)).nodes == ()


PLAIN_TYPES = tuple(
    sorted(
        (
            instance_type("c5.large", memory=4 * GIB, price=85_000),
            instance_type("m5.large", price=96_000),
            instance_type("m5.xlarge", cpu=4000, memory=16 * GIB, price=192_000),
            instance_type("r5.large", memory=16 * GIB, price=126_000),
        ),
        key=lambda entry: entry.name,
    )
)


def test_not_met_the_next_pool_is_tried_else_the_pod_waits() -> None:
    strict = pool("strict", (TYPE, "Exists"), least={TYPE: 9}, weight=9)
    assert one(pools=(strict, pool("spare")), market=PLAIN).by() == "spare"
    assert one(pools=(strict,), market=PLAIN).new == ()


@pytest.mark.parametrize(("count", "placed"), [(3, True), (4, False)])
def test_zones_count_by_the_same_rules(count: int, *, placed: bool) -> None:
    outcome = one(pools=(least(ZONE, count),), market=PLAIN)
    assert bool(outcome.new) is placed


def replacing(count: int, key: str = TYPE) -> Any:
    owner = saving("default", BOUGHT, (key, "Exists"), least={key: count})
    seen = scene(of_pool("a", "m5.2xlarge"), bound=(on("a", cpu=1000),), pools=(owner,))
    return looked(seen).change


def test_consolidation_lowers_no_least_number() -> None:
    assert replacing(1) is not None
    assert replacing(9) is None


def test_a_price_that_leaves_too_few_types_stops_consolidation() -> None:
    # Cheaper than the machine that is there are two types of three.
    assert replacing(1) is not None
    assert replacing(3) is None


def test_a_node_of_a_type_alike_stops_it_without_an_error() -> None:
    owner = saving("default", (TYPE, "Exists"), least={TYPE: 3})
    seen = scene(
        of_pool("a"), of_pool("b"), bound=(on("a", cpu=1500), on("b", cpu=1500)), pools=(owner,)
    )
    assert looked(seen).change is None


def test_with_a_least_number_dear_types_are_kept() -> None:
    assert LARGE.name not in offered(one(market=PLAIN, pools=(pool(),)))
    assert LARGE.name in offered(one(market=PLAIN, pools=(least(TYPE, 4),)))
