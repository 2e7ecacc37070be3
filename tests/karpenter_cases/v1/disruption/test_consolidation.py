"""When nodes of NodePools are removed or replaced to save money."""

from typing import Any

import pytest

from shared.disruption.consolidation import DisruptionMethod, consolidate
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.policy import PreferencePolicy
from shared.model.values import replace
from tests.builders import GIB, affinity, budget, instance_type, pod, ref, slot, spread
from tests.karpenter_cases.v1.disruption.scenes import AMD, of_pool, saving, scene, some
from tests.unit.disruption.clusters import (
    PACKING,
    best_change,
    changed,
    consolidated,
    looked,
    on,
    several_on,
)

KEEP = {keys.DO_NOT_DISRUPT: "true"}
SPOT = (keys.CAPACITY_TYPE, "In", "spot")
EITHER = (keys.CAPACITY_TYPE, "In", "spot", "on-demand")


def spot(name: str, kind: str, **more: Any) -> Any:
    return of_pool(name, kind, labels={keys.CAPACITY_TYPE: "spot"}, **more)


def twins() -> Any:
    return scene(*some(2), bound=(on("n0", cpu=300), on("n1", cpu=300)))


def test_a_node_goes_whose_pods_fit_elsewhere() -> None:
    assert changed(twins()).method == DisruptionMethod.DELETE
    foreign = of_pool("other", finalizers=())
    seen = scene(of_pool("a"), foreign, bound=(on("a", cpu=300),))
    assert changed(seen).remove == ("a",)


def test_a_cheaper_node_is_launched_for_its_pods() -> None:
    seen = scene(of_pool("a", "m5.2xlarge"), bound=(on("a", cpu=1000),))
    found = changed(seen)
    assert (found.method, found.remove, len(found.plan.nodes)) == (
        DisruptionMethod.REPLACE,
        ("a",),
        1,
    )


def test_what_is_not_cheaper_is_not_launched() -> None:
    seen = scene(of_pool("a"), bound=(on("a", cpu=1500),))
    assert looked(seen).change is None
    owner = (saving("default", AMD, EITHER),)
    dear = instance_type("m5.large", price=900_000)
    one = scene(spot("a", "m5.large"), bound=(on("a", cpu=1500),), pools=owner)
    assert looked(replace(one, instance_types=(dear,))).change is None


def bought_from(count: int, kind: str = "m5.2xlarge", least: int | None = None) -> Any:
    """Look at a spot node where so many types are sold for less than the largest one."""
    sizes = [instance_type(f"t{n}.large", price=40_000 * n, cpu=8000) for n in range(1, count + 1)]
    large = instance_type("m5.2xlarge", cpu=8000, price=4_000_000)
    asked = {keys.INSTANCE_TYPE: least} if least else None
    owner = (saving("default", AMD, SPOT, (keys.INSTANCE_TYPE, "Exists"), least=asked),)
    labels = {keys.CAPACITY_TYPE: "spot", keys.INSTANCE_TYPE: kind}
    node = of_pool("a", "m5.2xlarge", labels=labels)
    seen = scene(node, bound=(on("a", cpu=1000),), pools=owner)
    sold = tuple(sorted((*sizes, large), key=lambda entry: entry.name))
    packing = replace(PACKING, diversification_k_spot=30, option_price_ceiling_percent=10_000)
    return consolidate(
        replace(seen, instance_types=sold), (), DisruptionSettings(), packing, most_nodes=10
    ).best


def types_of(found: Any) -> set[str]:
    return {option.offering.instance_type for option in found.plan.nodes[0].options}


@pytest.mark.parametrize(("count", "moves"), [(14, False), (15, True)])
def test_spot_is_replaced_where_fifteen_types_are_cheaper(count: int, *, moves: bool) -> None:
    found = bought_from(count)
    assert (found is not None) is moves
    if found is not None:
        assert len(types_of(found)) >= count


def test_spot_among_the_fifteen_cheapest_stays() -> None:
    assert bought_from(20, "t10.large") is None


def test_spot_by_spot_offers_as_many_types_as_are_asked_for() -> None:
    found = bought_from(25, least=20)
    assert len(types_of(found)) >= 20
    assert len(types_of(bought_from(25))) < 20
    assert bought_from(19, least=20) is None


def test_several_nodes_become_one() -> None:
    nodes = some(3, kind="m5.xlarge")
    bound = tuple(on(f"n{number}", cpu=1100) for number in range(3))
    found = changed(scene(*nodes, bound=bound))
    assert len(found.remove) - len(found.plan.nodes) >= 1
    owner = (saving("default", AMD, EITHER),)
    mixed = (of_pool("a", "m5.xlarge"), spot("b", "m5.xlarge"))
    both = tuple(on(name, cpu=1800, memory=7 * GIB) for name in "ab")
    best = best_change(scene(*mixed, bound=both, pools=owner))
    for planned in best.plan.nodes:
        assert planned.options[0].offering.capacity_type == CapacityType.SPOT


def test_a_node_does_not_become_one_of_its_own_type() -> None:
    bound = (on("n0", cpu=1500), on("n1", cpu=300))
    found = looked(scene(*some(2), bound=bound)).change
    assert found is None or not found.plan.nodes


def test_what_needs_two_nodes_as_dear_is_not_done() -> None:
    apart = tuple(on("a", n, cpu=1500, anti_affinity=(affinity(),)) for n in range(2))
    assert looked(scene(of_pool("a", "m5.xlarge"), bound=apart)).change is None


def test_a_node_that_starts_takes_no_moved_pods() -> None:
    starting = of_pool("b", labels={keys.INITIALIZED: ""}, ready=None)
    assert looked(scene(of_pool("a"), starting, bound=(on("a"),))).change is None


def test_pods_that_wait_come_first_and_those_for_ever_hinder_nothing() -> None:
    waiting = pod("new", cpu=500)
    seen = replace(twins(), pending=(waiting,))
    assert consolidated(seen).reason == "pods wait for capacity"
    for_ever = pod("never", cpu=999_000)
    assert changed(replace(twins(), pending=(for_ever,))).method == DisruptionMethod.DELETE


def test_a_spread_and_distance_are_kept() -> None:
    zones = ("us-east-1a", "us-east-1b")
    nodes = tuple(of_pool(f"n{n}", labels={keys.ZONE: zone}) for n, zone in enumerate(zones))
    even = tuple(on(f"n{n}", spreads=(spread(),), cpu=300) for n in range(2))
    assert looked(scene(*nodes, bound=even)).change is None
    apart = tuple(on(f"n{n}", anti_affinity=(affinity(),), cpu=300) for n in range(2))
    assert looked(scene(*some(2), bound=apart)).change is None


@pytest.mark.parametrize("by", ["budget", "pod", "node"])
def test_a_protected_node_is_left_and_others_go(by: str) -> None:
    web: dict[str, Any] = {"labels": {"app": "web"}}
    nodes = (of_pool("n0", annotations=KEEP if by == "node" else {}), of_pool("n1"))
    held = on("n0", cpu=300, annotations=KEEP if by == "pod" else {}, **web)
    free = on("n1", cpu=300, labels={"app": "other"})
    budgets = (budget(0),) if by == "budget" else ()
    assert changed(scene(*nodes, bound=(held, free)), budgets=budgets).remove == ("n1",)


def test_pods_without_an_owner_are_moved() -> None:
    bound = (on("n0", cpu=300, owner=None), on("n1", cpu=300, owner=None))
    assert changed(scene(*some(2), bound=bound)).method == DisruptionMethod.DELETE


def test_a_pool_without_types_stops_no_other() -> None:
    nothing = saving("a-nothing", (keys.INSTANCE_TYPE, "In", "m5.unknown"))
    seen = scene(*some(2), bound=twins().bound, pools=(nothing, saving()))
    assert changed(seen).method == DisruptionMethod.DELETE


def test_where_several_cannot_go_one_still_does() -> None:
    bound = (on("n0", cpu=600), on("n1", cpu=600), on("n2", cpu=1000))
    found = changed(scene(*some(3), bound=bound))
    assert (len(found.remove), found.method) == (1, DisruptionMethod.DELETE)


def test_the_best_so_far_counts_when_time_is_over() -> None:
    bound = tuple(on(f"n{n}", cpu=300) for n in range(3))
    seen = scene(*some(3), bound=bound)
    assert changed(seen, max_simulations=2).remove
    assert looked(seen, max_simulations=0).change is None


def test_of_nodes_at_one_price_the_cheapest_to_disrupt_goes() -> None:
    bound = (*several_on("n0", 3, cpu=100), on("n1", cpu=100))
    assert changed(scene(*some(2), bound=bound)).remove == ("n1",)


def test_pods_that_wait_meanwhile_make_no_node_too_many() -> None:
    seen = replace(twins(), pending=(pod("new", cpu=300),))
    assert looked(seen).change is None


def test_a_node_launched_for_a_going_one_is_left() -> None:
    fresh = of_pool("new", "m5.2xlarge", annotations={keys.REPLACES: "old"})
    assert looked(scene(fresh, bound=())).change is None
    promised = slot(instance_id="i-new", node_name="new", pods=(ref(pod("coming")),))
    seen = scene(of_pool("new", "m5.2xlarge"), slots=(promised,))
    assert looked(seen).change is None


IGNORING = {"annotations": {"dovetail.dev/preference-policy": "Ignore"}}


def test_ignored_preferences_free_what_respected_ones_keep() -> None:
    soft = tuple(
        on(f"n{n}", cpu=300, spreads=(spread(keys.HOSTNAME, hard=False),)) for n in range(2)
    )
    ignoring = saving(metadata=IGNORING)
    assert ignoring.preference_policy == PreferencePolicy.IGNORE
    assert changed(scene(*some(2), bound=soft, pools=(ignoring,))).method == DisruptionMethod.DELETE
    assert looked(scene(*some(2), bound=soft, pools=(saving(),))).change is None


@pytest.mark.parametrize(
    "disruption",
    [
        {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"},
        {"consolidateAfter": "Never"},
    ],
    ids=["policy", "never"],
)
def test_a_policy_that_forbids_it_does_nothing(disruption: dict[str, str]) -> None:
    owner = saving(disruption=disruption)
    seen = scene(*some(2), bound=twins().bound, pools=(owner,))
    assert looked(seen).reason == "no node may be disrupted"


BALANCED = (saving(disruption={"consolidationPolicy": "Balanced"}),)


def test_a_balanced_pool_moves_what_is_oversized() -> None:
    oversized = scene(of_pool("a", "m5.2xlarge"), bound=(on("a", cpu=1000),), pools=BALANCED)
    assert changed(oversized).method == DisruptionMethod.REPLACE
    packed = scene(of_pool("a"), bound=(on("a", cpu=1500),), pools=BALANCED)
    assert looked(packed).change is None
    spare = scene(*some(2), bound=twins().bound, pools=BALANCED)
    assert changed(spare).method == DisruptionMethod.DELETE


def test_a_balanced_pool_at_its_edges() -> None:
    saves_nothing = scene(of_pool("a"), bound=(on("a", cpu=1500),), pools=BALANCED)
    assert looked(saves_nothing).change is None
    disturbs_nothing = scene(of_pool("a"), pools=BALANCED)
    assert changed(disturbs_nothing).method == DisruptionMethod.EMPTY
    # No offering is free: next to nothing is the least.
    cheap = tuple(instance_type(known.name, price=10) for known in twins().instance_types)
    costs_nothing = scene(*some(2), bound=twins().bound, pools=BALANCED)
    assert looked(replace(costs_nothing, instance_types=cheap)).change is None


def test_a_balanced_pool_leaves_others_as_they_are() -> None:
    balanced = saving("even", disruption={"consolidationPolicy": "Balanced"})
    seen = scene(*some(2), bound=twins().bound, pools=(balanced, saving()))
    assert changed(seen).remove == changed(twins()).remove


def test_missing_prices_break_nothing() -> None:
    assert looked(replace(twins(), instance_types=())).change is None
