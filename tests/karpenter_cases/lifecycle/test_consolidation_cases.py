"""Fewer or cheaper nodes for the same pods."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.consolidation import DisruptionMethod
from shared.disruption.evaluation import OngoingChanges
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests.builders import (
    NOW,
    affinity,
    budget,
    needs,
    node_of,
    pod,
    provisioner,
    ref,
    site,
    slot,
    spread,
)
from tests.unit.disruption.clusters import (
    LATER,
    SAVING,
    changed,
    cluster,
    looked,
    on,
)
from tests.unit.nodes.leave.replacements import half_empty, joined, state_of, step
from tests.unit.worlds import MINUTE

HELD = {keys.DO_NOT_EVICT: "true"}
KEPT = {keys.DO_NOT_CONSOLIDATE: "true"}
STARTING = {keys.INITIALIZED: ""}


def roomy(**overrides: Any) -> ClusterSnapshot:
    """One large machine with a pod that a small one could hold."""
    return cluster(node_of("big", "m5.2xlarge"), bound=(on("big", **overrides),))


def twins(**overrides: Any) -> ClusterSnapshot:
    """Two machines whose pods fit on one."""
    bound = (on("a", **overrides), on("b"))
    return cluster(node_of("a"), node_of("b"), bound=bound)


def test_a_large_node_with_little_on_it_is_replaced_by_a_cheaper_one() -> None:
    found = changed(roomy())
    assert (found.method, found.remove) == (DisruptionMethod.REPLACE, ("big",))
    assert found.plan.nodes[0].price_micros_per_hour == 96_000


def test_a_provisioner_that_can_buy_nothing_does_not_hinder_a_replacement() -> None:
    nothing = provisioner("nothing", requirements=needs(keys.INSTANCE_TYPE, "In", "x9.huge"))
    assert changed(replace(roomy(), provisioners=(SAVING, nothing))).remove == ("big",)


def test_a_node_whose_pods_a_budget_holds_is_not_replaced() -> None:
    assert looked(roomy(), budgets=(budget(0),)).change is None
    assert looked(roomy(), budgets=(budget(1),)).change is not None


def test_a_budget_of_another_namespace_blocks_no_pod() -> None:
    assert looked(roomy(), budgets=(budget(0, namespace="other"),)).change is not None


def test_a_node_with_the_annotation_against_consolidation_is_not_replaced() -> None:
    seen = cluster(node_of("big", "m5.2xlarge", annotations=KEPT), bound=(on("big"),))
    assert looked(seen).change is None


def test_a_spot_node_stays_when_every_other_pool_costs_more() -> None:
    spot = provisioner(
        consolidation=True,
        requirements=needs(keys.CAPACITY_TYPE, "In", "spot").merge(needs(keys.ARCH, "In", "amd64")),
    )
    node = node_of("a", labels={keys.CAPACITY_TYPE: CapacityType.SPOT.value})
    assert looked(cluster(node, bound=(on("a"),), provisioners=(spot,))).change is None


def test_an_on_demand_node_stays_when_every_other_costs_more() -> None:
    assert looked(cluster(node_of("a"), bound=(on("a"),))).change is None


def test_while_a_change_is_under_way_one_that_needs_its_room_waits() -> None:
    waiting = OngoingChanges(running=frozenset({"uid-a"}))
    assert looked(twins(), pace=waiting).change is None


def test_a_node_whose_pods_fit_elsewhere_is_deleted() -> None:
    found = changed(twins())
    assert (found.method, len(found.remove)) == (DisruptionMethod.DELETE, 1)


def test_provisioner_without_subnets_does_not_block_a_deletion() -> None:
    lost = provisioner("lost")
    seen = replace(
        twins(),
        provisioners=(SAVING, lost),
        sites=(site(), site("lost", zones=(), reason="no subnet has the tags")),
    )
    assert changed(seen).method == DisruptionMethod.DELETE


def test_pods_may_move_to_unmanaged_nodes() -> None:
    theirs = node_of("theirs", finalizers=(), labels={keys.PROVISIONER_NAME: ""})
    seen = cluster(node_of("a"), theirs, bound=(on("a"),))
    found = changed(seen)
    assert (found.remove, found.plan.placements[0].node) == (("a",), "theirs")


def test_a_node_whose_pods_a_budget_holds_is_not_deleted() -> None:
    assert looked(twins(), budgets=(budget(0),)).change is None


def test_a_node_with_a_pod_that_must_not_be_evicted_is_not_deleted() -> None:
    assert changed(twins(annotations=HELD)).remove == ("b",)


def test_pods_without_an_owner_do_not_keep_a_node() -> None:
    seen = cluster(node_of("a"), node_of("b"), bound=(on("a", owner=None), on("b")))
    assert changed(seen).method == DisruptionMethod.DELETE


def test_no_pod_moves_to_a_node_that_is_not_initialized() -> None:
    starting = node_of("b", ready=None, allocatable=Resources(), labels=STARTING)
    flying = slot(instance_id="i-b", node_name="b")
    seen = cluster(node_of("a"), starting, bound=(on("a"),), slots=(flying,))
    assert looked(seen).change is None


def test_initialized_nodes_are_filled_before_others_are_thought_of() -> None:
    starting = node_of("c", ready=None, allocatable=Resources(), labels=STARTING)
    flying = slot(instance_id="i-c", node_name="c")
    seen = replace(twins(), nodes=(*twins().nodes, starting), slots=(flying,))
    found = changed(seen)
    assert found.plan.placements[0].node in {"a", "b"}


def test_a_pod_that_can_be_placed_nowhere_does_not_stop_it() -> None:
    lost = pod("lost", extra={"example.com/rare": 1})
    assert changed(replace(twins(), pending=(lost,))).method == DisruptionMethod.DELETE


def test_no_pod_is_made_to_wait() -> None:
    bound = (on("a", cpu=1200), on("b", cpu=1200))
    assert looked(cluster(node_of("a"), node_of("b"), bound=bound)).change is None


def test_a_pod_that_comes_meanwhile_and_must_not_be_evicted_keeps_the_node() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    world.cluster.add(pod("late", node_name="big", annotations=HELD))
    assert step(world, state_of(world))["next"] == "wait"
    assert world.cluster.node_values["big"].deletion_at is None


def test_empty_node_is_read_again_before_it_is_removed() -> None:
    world = half_empty()
    world.cluster.pods.clear()
    world.provision(look=True)
    state = state_of(world)
    assert state["new_nodes"] == 0
    world.cluster.add(pod("late", node_name="big"))
    assert step(world, state)["result"] == "pods came that fit nowhere else"


def test_a_used_node_is_looked_at_again_once_it_is_cordoned() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    reads = world.cluster.reads.count("bound_pods")
    step(world, state_of(world))
    assert world.cluster.reads.count("bound_pods") > reads
    first, *_ = (c.argument for c in world.cluster.calls if c.subject == "big")
    assert getattr(first, "unschedulable", None) is True


def test_a_change_that_is_no_longer_valid_is_abandoned() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    world.cluster.add(*(pod(f"late{n}", node_name="big", cpu=900) for n in range(4)))
    assert step(world, state_of(world))["result"] == "pods came that fit nowhere else"
    big = world.cluster.node_values["big"]
    assert (big.unschedulable, big.deletion_at) == (False, None)
    assert keys.REMOVAL_REASON not in big.annotations


def three() -> ClusterSnapshot:
    nodes = tuple(node_of(name) for name in "abc")
    return cluster(*nodes, bound=tuple(on(name, cpu=1000, memory=2**30) for name in "abc"))


def test_the_best_that_was_found_counts_when_the_tries_are_used_up() -> None:
    seen = replace(three(), bound=tuple(on(name, cpu=300) for name in "abc"))
    assert len(changed(seen).remove) == 2
    assert changed(seen, max_simulations=2).remove


def test_without_tries_left_nothing_is_done() -> None:
    assert looked(twins(), max_simulations=0).change is None


def test_three_nodes_become_one() -> None:
    nodes = tuple(node_of(name, "m5.xlarge") for name in "abc")
    bound = tuple(on(name, cpu=1100) for name in "abc")
    found = changed(cluster(*nodes, bound=bound))
    assert (len(found.remove), len(found.plan.nodes)) == (2, 0)


def test_two_nodes_do_not_become_one_of_the_same_type() -> None:
    found = looked(cluster(node_of("a"), bound=(on("a", cpu=1500),)))
    assert found.change is None


def test_several_nodes_are_read_again_before_the_first_is_removed() -> None:
    world = half_empty()
    world.cluster.add(node_of("too", "m5.2xlarge"), pod("c", node_name="too"))
    world.disruption = replace(world.disruption, budget_percent=100)
    world.provision(look=True)
    state = state_of(world)
    assert state["remove"]
    world.cluster.add(*(pod(f"late{n}", node_name=state["node"], cpu=7000) for n in range(3)))
    for _ in range(2):
        world.advance(MINUTE)
    if state["new_nodes"]:
        for node in world.cluster.nodes():
            if node.ready is None:
                world.kubelet_joins(node.name)
                world.bind(node.name)
    step(world, state)
    assert all(node.deletion_at is None for node in world.cluster.nodes())


def test_when_an_empty_node_must_stay_the_others_are_evaluated_next() -> None:
    empty = node_of("empty")
    seen = replace(twins(), nodes=(*twins().nodes, empty))
    assert changed(seen).remove == ("empty",)
    rested = OngoingChanges(rested=frozenset({"uid-empty"}))
    assert len(changed(seen, pace=rested).remove) >= 1
    assert "empty" not in changed(seen, pace=rested).remove


def test_when_some_nodes_together_must_stay_one_alone_is_evaluated() -> None:
    rested = OngoingChanges(rested=frozenset({"uid-a"}))
    seen = replace(three(), bound=tuple(on(name, cpu=300) for name in "abc"))
    found = changed(seen, pace=rested)
    assert "a" not in found.remove


def test_node_that_expires_soon_is_cheaper_to_remove() -> None:
    both = provisioner(consolidation=True, ttl_until_expired=timedelta(hours=10))
    seen = replace(twins(), provisioners=(both,))
    old = replace(seen.nodes[1], created_at=NOW - timedelta(hours=8))
    assert changed(replace(seen, nodes=(seen.nodes[0], old))).remove == ("b",)


def test_an_even_spread_over_zones_is_kept() -> None:
    zones = ("us-east-1a", "us-east-1b", "us-east-1c")
    nodes = tuple(
        node_of(name, "m5.2xlarge" if name == "c" else "m5.large", labels={keys.ZONE: zone})
        for name, zone in zip("abc", zones, strict=True)
    )
    bound = tuple(on(name, spreads=(spread(),), cpu=1000) for name in "abc")
    found = changed(cluster(*nodes, bound=bound))
    assert found.remove == ("c",)
    assert {option.offering.zone for option in found.plan.nodes[0].options} == {zones[2]}


def test_pods_that_avoid_each_other_are_not_put_together() -> None:
    bound = tuple(on(name, anti_affinity=(affinity(),)) for name in "ab")
    assert looked(cluster(node_of("a"), node_of("b"), bound=bound)).change is None


def test_pods_that_come_while_nodes_are_exchanged_get_a_node_of_their_own() -> None:
    world = half_empty()
    world.provision(look=True)
    world.cluster.add(*(pod(f"new{n}", cpu=7000) for n in range(2)))
    report = world.provision(look=True)
    assert report.nodes_launched >= 1
    assert report.nodes_disrupted == 0


@pytest.mark.parametrize("mark", ["promised", "replaces"])
def test_node_launched_for_pods_of_a_removed_node_stays(mark: str) -> None:
    fresh = node_of("new", "m5.2xlarge")
    going = node_of("old", deletion_at=LATER)
    seen = cluster(fresh, going, bound=(on("old"),))
    if mark == "promised":
        coming = slot(instance_id="i-new", node_name="new", pods=(ref(pod("coming")),))
        seen = replace(seen, slots=(coming,))
    else:
        marked = replace(fresh, annotations={keys.REPLACES: "old"})
        seen = replace(seen, nodes=(marked, going))
    assert looked(seen).change is None
