"""Places that are released, reassigned and made smaller after the packer."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.pods import LabelSelector, Pod
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.packer import pack
from shared.packing.problem import Packing, PackingSettings
from shared.planning import pack_groups, solve
from shared.planning.decide import decide
from shared.planning.initial_state import initial_state
from shared.planning.offerings.offering_table import LaunchableOffering
from shared.planning.place_packed import PackedPlaces
from shared.planning.placement.node_options import shrink_nodes
from shared.planning.placement.place import fill
from shared.planning.revalidate import revalidate
from shared.planning.together import place_together
from shared.planning.work import Work
from tests import builders as make
from tests.builders import needs, pod, pods, snapshot
from tests.unit.planning.asking import (
    DB,
    QUICK,
    A,
    B,
    C,
    agent,
    in_zone,
    there,
    together,
    why,
    zones_of,
)


def solved(world: ClusterSnapshot, settings: PackingSettings = QUICK) -> Any:
    plan_state = initial_state(world, world.pending, settings, Work(1_000_000))
    solve.solve(plan_state, plan_state.pod_groups)
    return plan_state


def test_late_node_that_breaks_spread_relocates_pod() -> None:
    waiting: tuple[Pod, ...] = pods(
        4, spreads=(make.spread(),), node_selector=needs(keys.ZONE, "In", A, B), cpu=900
    )
    ignoring = tuple(
        replace(
            other_pod,
            scheduling=replace(
                other_pod.scheduling,
                spreads=(make.spread(honor_affinity=False),),
                host_ports=(("", "TCP", 1),),
            ),
        )
        for other_pod in waiting
    )
    plan_state = solved(snapshot(*ignoring))
    assert len(plan_state.binding_order) == 4
    offer = plan_state.table.offers[1]
    far = next(offering for offering in offer.offerings if offering.zone == C)
    target = plan_state.open_node((LaunchableOffering(1, far),), ())
    assert plan_state.recheck
    target.contents[0] = []
    revalidate(plan_state)
    assert len(plan_state.binding_order) == 2
    assert sum(len(pod_group.waiting) for pod_group in plan_state.pod_groups) == 2
    plan_state.recheck = True
    revalidate(plan_state)
    assert len(plan_state.binding_order) == 2


def test_machines_above_the_cap_are_bought_when_nothing_else_holds_the_pods() -> None:
    tiny = PackingSettings(improve_iterations=2, max_node_vcpus=1)
    plan_state = solved(snapshot(*pods(3, cpu=900, affinity=(make.affinity(),))), tiny)
    assert len(plan_state.binding_order) == 3


def test_nodes_that_lost_pods_become_smaller_and_empty_ones_are_forgotten() -> None:
    plan_state = solved(snapshot(*pods(3, cpu=900, affinity=(make.affinity(),))))
    target = plan_state.targets[0]
    one = plan_state.pod_groups[0]
    large = target.options
    for ref in list(target.contents[0])[:2]:
        target.remove_pod(one, ref)
    plan_state.underfilled.append(target)
    shrink_nodes(plan_state)
    assert target.options != large
    plan_state.underfilled.append(target)
    shrink_nodes(plan_state)
    target.remove_pod(one, target.contents[0][0])
    plan_state.underfilled.append(target)
    shrink_nodes(plan_state)
    assert plan_state.underfilled == []
    plan_state.drop_empty()
    assert plan_state.targets == []


def test_a_pod_leaves_a_room_as_it_came() -> None:
    plan_state = solved(snapshot(pod(host_ports=(("", "TCP", 1),)), nodes=(make.node(),)))
    (target,) = plan_state.targets
    before = dict(target.existing.available.items)
    assert target.available != before
    target.remove_pod(plan_state.pod_groups[0], target.contents[0][0])
    assert target.available == before
    assert target.ports == []


def test_a_host_port_keeps_followers_from_a_host_that_could_grow() -> None:
    port = (("", "TCP", 1),)
    anchor = pod("anchor", labels={"app": "db"}, cpu=1700, host_ports=port)
    near = (make.affinity(selector=DB),)
    follower = pod("f", cpu=900, affinity=near, host_ports=port)
    assert list(why(decide(snapshot(anchor, follower), QUICK))) == ["f"]


def test_anchors_without_rules_are_placed_where_their_followers_fit() -> None:
    anchors = pods(2, "d", labels={"app": "db"})
    near = (make.affinity(keys.ZONE, selector=DB),)
    plan = decide(snapshot(*anchors, *pods(3, affinity=near)), QUICK)
    assert len(set(zones_of(plan).values())) == 1


def test_a_spread_that_selects_everything_or_nothing_counts_no_pod() -> None:
    for chosen in (None, LabelSelector()):
        rules = (make.spread(keys.HOSTNAME, selector=chosen),)
        plan = decide(snapshot(*pods(3, cpu=100, spreads=rules)), QUICK)
        assert together(plan) == [["p000", "p001", "p002"]]


def test_hosts_that_take_no_pods_close_nothing() -> None:
    nodes = (in_zone(A, "n1", unschedulable=True), make.node("n2"))
    web = (pod("x", node_name="n1"), pod("y", node_name="n2"))
    alone = pod(cpu=10, anti_affinity=(make.affinity(),))
    assert len(decide(snapshot(alone, nodes=nodes, bound=web), QUICK).nodes) == 1


def test_options_of_several_types_hold_all_that_is_on_them() -> None:
    roomy = PackingSettings(improve_iterations=2, option_price_ceiling_percent=400)
    plan = decide(snapshot(*pods(3, spreads=(make.spread(),))), roomy)
    assert all(len(node.options) > 1 for node in plan.nodes)
    guest = pod("g", nominated_node="bare")
    bare = make.node("bare", labels={keys.HOSTNAME: "bare"})
    even = pods(2, spreads=(make.spread(),))
    assert len(decide(snapshot(guest, *even, nodes=(bare,)), QUICK).nodes) == 2


def test_a_host_grows_only_for_pods_that_may_run_on_it() -> None:
    anchor = pod("anchor", labels={"app": "db"}, cpu=1700)
    rules: dict[str, Any] = {
        "affinity": (make.affinity(selector=DB),),
        "spreads": (make.spread(keys.HOSTNAME, 2),),
    }
    plan = decide(snapshot(anchor, *pods(4, "f", cpu=900, **rules)), QUICK)
    assert [len(entry) for entry in together(plan)] == [3]
    assert list(why(plan)) == ["f002", "f003"]


def test_a_seat_is_refused_where_topology_constraints_refuse_it() -> None:
    plan_state = solved(snapshot(*pods(2, cpu=100, spreads=(make.spread(keys.HOSTNAME),))))
    one = plan_state.pod_groups[0]
    seats = PackedPlaces()
    assert seats.find(one) == -1
    for target in plan_state.targets:
        seats.add(target, 1)
    assert seats.find(one) == -1
    fill(plan_state, one)
    assert len(plan_state.binding_order) == 2


def test_pods_in_rooms_lose_their_place_too() -> None:
    rule = make.spread(honor_affinity=False)
    waiting = pods(4, cpu=900, spreads=(rule,), node_selector=needs(keys.ZONE, "In", A, B))
    plan_state = solved(snapshot(*waiting, nodes=(in_zone(A, "n1"), in_zone(B, "n2"))))
    assert {target.name for _, _, target in plan_state.binding_order} == {"n1", "n2"}
    offer = plan_state.table.offers[1]
    target = plan_state.open_node(
        (LaunchableOffering(1, next(o for o in offer.offerings if o.zone == C)),), ()
    )
    target.contents[0] = []
    revalidate(plan_state)
    assert len(plan_state.binding_order) == 2


def test_a_plan_that_changes_with_every_revalidation_is_left_at_its_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan_state = solved(snapshot(pod(spreads=(make.spread(),))))
    seen = []

    def judged(given: Any) -> list[Any]:
        given.recheck = True
        seen.append(given)
        return []

    monkeypatch.setattr("shared.planning.revalidate._refused_again", judged)
    plan_state.recheck = True
    revalidate(plan_state)
    assert len(seen) == 4


def test_a_node_for_others_opens_no_domain_behind_a_spread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place_together, "_VECTORS", 0)
    rule = make.spread(honor_affinity=False)
    even = pods(4, cpu=900, spreads=(rule,), node_selector=needs(keys.ZONE, "In", B, C))
    other = pod("other", namespace="other", cpu=1800, node_selector=needs(keys.ZONE, "In", A))
    plan = decide(snapshot(*even, other), QUICK)
    zones = zones_of(plan)
    assert zones["other"] == A
    # The other's node makes its zone a domain, which is empty for ever: one pod each elsewhere.
    assert sorted(zones.values()) == [A, B, C]
    assert len(plan.unschedulable) == 2
    known = pod("known", namespace="other", cpu=1800, node_selector=needs(keys.ZONE, "In", A, B))
    free = decide(snapshot(*even, known), QUICK)
    assert len(free.order) + len(free.unschedulable) == 5


def test_a_shared_volume_leaves_with_the_last_pod_that_uses_it() -> None:
    ebs = "attachable-volumes-ebs"
    (first, second) = (
        replace(
            other_pod, scheduling=replace(other_pod.scheduling, shared=(("default/data", ebs),))
        )
        for other_pod in pods(2, cpu=900)
    )
    types = (make.instance_type("m5.xlarge", cpu=4000, extra={ebs: 1}),)
    nodes = (make.node(allocatable=make.instance_type(extra={ebs: 1}).allocatable),)
    for world in (
        snapshot(first, second, instance_types=types),
        snapshot(first, second, nodes=nodes, instance_types=()),
    ):
        plan_state = solved(world)
        (target,) = plan_state.targets
        left = [target.available[ebs]]
        for index, refs in list(target.contents.items()):
            for ref in list(refs):
                target.remove_pod(plan_state.pod_groups[index], ref)
                left.append(target.available[ebs])
        assert left == [0, 0, 1]
        assert target.volumes == {}


def test_daemons_of_nodes_still_to_come_are_counted_when_places_are_refused_again() -> None:
    rule = make.spread(keys.HOSTNAME, selector=make.selector(app="agent"), max_skew=2)
    plan_state = solved(snapshot(*pods(3, cpu=900, spreads=(rule,)), daemonsets=(agent(),)))
    before = [target.name for _, _, target in plan_state.binding_order]
    plan_state.recheck = True
    revalidate(plan_state)
    assert [target.name for _, _, target in plan_state.binding_order] == before
    assert any(target.daemon_set_pods for target in plan_state.targets)


def test_a_host_opened_for_others_counts_for_a_pod_that_could_not_have_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place_together, "_VECTORS", 0)
    rule = make.spread(keys.HOSTNAME, selector=make.selector(app="web"))
    tied = pod("tied", priority=9, spreads=(rule,), volume_terms=((needs(keys.ZONE, "In", C),),))
    other = pod("other", labels={"app": "none"}, cpu=1500, spreads=(rule,))
    world = snapshot(
        tied,
        nodes=(in_zone(C, "n1"),),
        bound=(pod("stands", node_name="n1"),),
        sites=(make.site(zones=(A, B)),),
    )
    assert there(decide(world, QUICK)) == {"tied": "n1"}
    # Its volume keeps it from the new node, which its spread counts all the same.
    plan = decide(replace(world, pending=(tied, other)), QUICK)
    assert set(why(plan)) == {"tied"}
    assert together(plan) == [["other"]]


def test_a_plan_says_why_a_simpler_one_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def simpler(*asked: Any, **options: Any) -> Packing:
        return replace(pack(*asked, **options), fallback="the work is counted")

    monkeypatch.setattr(pack_groups, "pack", simpler)
    assert decide(snapshot(pod())).remark == "a simpler plan was taken: the work is counted"
