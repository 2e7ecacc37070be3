"""What becomes of what pods prefer: respected, weighed or ignored."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod, PreferredNodes
from shared.model.plan import KeptPreferences, Plan
from shared.model.policy import PreferencePolicy
from shared.model.resources import Resources
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning import solve, weighing
from shared.planning.decide import decide
from shared.planning.initial_state import initial_state
from shared.planning.work import Work
from tests import builders as make
from tests.builders import needs, pod, pods, provisioner, snapshot
from tests.unit.planning.asking import QUICK, A, B, C, in_zone, there, together, zones_of

RESPECT, WEIGH, IGNORE = PreferencePolicy
APART = (make.affinity(weight=1),)
EVENLY = (make.spread(hard=False),)


def under(policy: PreferencePolicy, **more: Any) -> PackingSettings:
    return replace(QUICK, preference_policy=policy, **more)


def prefers(*wanted: tuple[int, str, str]) -> tuple[PreferredNodes, ...]:
    return tuple(
        PreferredNodes(weight=weight, requirements=needs(key, "In", value))
        for weight, key, value in wanted
    )


def kept(plan: Plan) -> tuple[int, int]:
    return plan.preferences.kept, plan.preferences.stated


def webs(count: int, **more: Any) -> tuple[Pod, ...]:
    return pods(count, labels={"app": "web"}, **{"cpu": 100, **more})


def test_a_respected_preference_is_kept_whatever_it_costs() -> None:
    plan = decide(snapshot(*webs(2, anti_affinity=APART)), under(RESPECT))
    assert len(plan.nodes) == 2
    assert plan.preferences == KeptPreferences(stated=2, kept=2)


def test_a_respected_preference_is_given_up_when_nothing_else_can_place_the_pod() -> None:
    limited = provisioner(limits=Resources.of(cpu=2000))
    world = snapshot(*webs(2, anti_affinity=APART), provisioners=(limited,))
    plan = decide(world, under(RESPECT))
    assert together(plan) == [["p000", "p001"]]
    assert kept(plan) == (0, 2)
    # Giving it up does not help pods that are too large.
    large = decide(snapshot(*webs(2, anti_affinity=APART, cpu=90_000)), under(RESPECT))
    assert len(large.unschedulable) == 2


def test_limits_too_small_for_a_preference_leave_room_for_the_pod_without_it() -> None:
    choosy = pod(preferred_nodes=prefers((1, keys.INSTANCE_TYPE, "m5.2xlarge")))
    world = snapshot(choosy, provisioners=(provisioner(limits=Resources.of(cpu=4000)),))
    plan = decide(world, under(RESPECT))
    assert [node.options[0].offering.instance_type for node in plan.nodes] == ["m5.large"]
    # Where the limits are too small even without it, they are named.
    least = snapshot(choosy, provisioners=(provisioner(limits=Resources.of(cpu=1000)),))
    (left,) = decide(least, under(RESPECT)).unschedulable
    assert left.limited == {"default"}


def test_respected_preferences_are_given_up_in_karpenters_order() -> None:
    zones = make.affinity(keys.ZONE, weight=10)
    wanted = webs(5, anti_affinity=(*APART, zones), preferred_nodes=prefers((1, keys.ZONE, B)))
    plan = decide(snapshot(*wanted), under(RESPECT))
    # Apart by zone, the heaviest, is dropped first: zone and host stay as they are preferred.
    assert len(plan.nodes) == 5
    assert list(zones_of(plan).values()).count(B) == 5


def test_of_respected_preferences_for_nodes_the_heaviest_that_can_be_met_counts() -> None:
    wanted = prefers((10, keys.ZONE, "mars"), (5, keys.ZONE, B), (1, keys.ZONE, A))
    plan = decide(snapshot(pod(preferred_nodes=wanted)), under(RESPECT))
    assert zones_of(plan) == {"a": B}
    assert kept(plan) == (1, 3)


def test_a_weighed_preference_is_kept_where_it_costs_little() -> None:
    # One micro-dollar an hour more than in the first zone.
    plan = decide(snapshot(pod(preferred_nodes=prefers((1, keys.ZONE, C)))), under(WEIGH))
    assert zones_of(plan) == {"a": C}
    assert plan.preferences == KeptPreferences(stated=1, kept=1)


def test_a_weighed_preference_that_costs_more_is_left_and_its_price_is_told() -> None:
    large = pod(cpu=1500, preferred_nodes=prefers((1, keys.INSTANCE_TYPE, "m5.2xlarge")))
    plan = decide(snapshot(large), under(WEIGH))
    assert plan.cost_micros_per_hour == 96_000
    assert plan.preferences == KeptPreferences(stated=1, kept=0, rest_micros_per_hour=288_000)
    ready_to_pay = decide(snapshot(large), under(WEIGH, preference_price_percent=300))
    assert ready_to_pay.cost_micros_per_hour == 384_000


def test_of_weighed_preferences_that_exclude_each_other_the_heavier_is_kept() -> None:
    wanted = prefers((1, keys.ZONE, A), (9, keys.ZONE, C))
    plan = decide(snapshot(pod(preferred_nodes=wanted)), under(WEIGH))
    assert zones_of(plan) == {"a": C}
    assert kept(plan) == (1, 2)


def test_what_costs_little_is_kept_beside_what_costs_too_much() -> None:
    wanted = prefers((9, keys.INSTANCE_TYPE, "m5.2xlarge"), (1, keys.ZONE, C))
    plan = decide(snapshot(pod(cpu=1500, preferred_nodes=wanted)), under(WEIGH))
    assert zones_of(plan) == {"a": C}
    assert plan.preferences.kept == 1
    assert plan.preferences.rest_micros_per_hour > 250_000


def test_cheap_preferences_are_kept_together_beside_dear_ones_of_greater_weight() -> None:
    # In halves of equal size the last zone would not be reached within the tries there are.
    large = (keys.INSTANCE_TYPE, "m5.2xlarge")
    wanted = (
        ("a", (9, *large)),
        ("b", (8, keys.ZONE, C)),
        ("c", (7, *large)),
        ("d", (6, keys.ZONE, C)),
    )
    apart = {"labels": {"app": "web"}, "anti_affinity": (make.affinity(),)}
    waiting = [pod(n, cpu=1500, preferred_nodes=prefers(wish), **apart) for n, wish in wanted]
    plan = decide(snapshot(*waiting), under(WEIGH))
    assert (zones_of(plan)["b"], zones_of(plan)["d"]) == (C, C)
    assert kept(plan) == (2, 4)


def test_where_all_preferences_cost_too_much_none_is_kept() -> None:
    dear = prefers((1, keys.INSTANCE_TYPE, "m5.2xlarge"))
    alone = [pod(name, cpu=cpu, preferred_nodes=dear) for name, cpu in (("a", 1500), ("b", 1400))]
    assert kept(decide(snapshot(*alone), under(WEIGH))) == (0, 2)


def test_a_weighed_preference_leaves_no_pod_without_a_place() -> None:
    limited = provisioner(limits=Resources.of(cpu=2000))
    world = snapshot(
        *webs(1, cpu=1500),
        pod("choosy", cpu=100, preferred_nodes=prefers((1, keys.INSTANCE_TYPE, "m5.xlarge"))),
        provisioners=(limited,),
    )
    plan = decide(world, under(WEIGH, preference_price_percent=900))
    assert plan.unschedulable == ()
    assert kept(plan) == (0, 1)


def test_a_place_that_costs_nothing_is_taken_against_a_preference() -> None:
    wanted = pod(preferred_nodes=prefers((1, keys.ZONE, B)))
    far = in_zone(A, "far")
    assert there(decide(snapshot(wanted, nodes=(far,)), under(WEIGH))) == {"a": "far"}
    near = in_zone(B, "near")
    assert there(decide(snapshot(wanted, nodes=(far, near)), under(WEIGH))) == {"a": "near"}


def test_ignored_preferences_are_neither_kept_nor_counted() -> None:
    world = snapshot(pod(preferred_nodes=prefers((1, keys.ZONE, C))))
    plan = decide(world, under(IGNORE))
    assert zones_of(plan) == {"a": A}
    assert plan.preferences == KeptPreferences()


@pytest.mark.parametrize(("own", "nodes"), [(RESPECT, 2), (WEIGH, 1), (None, 1)])
def test_a_provisioner_may_say_what_holds_for_its_nodes(
    own: PreferencePolicy | None, nodes: int
) -> None:
    elsewhere = provisioner("b", weight=9, also=needs(keys.ZONE, "In", B))
    mine = replace(provisioner("mine", also=needs(keys.ZONE, "In", A)), preference_policy=own)
    wanted = webs(2, anti_affinity=APART, node_selector=needs(keys.ZONE, "In", A))
    world = snapshot(*wanted, provisioners=(elsewhere, mine))
    assert len(decide(world, under(IGNORE)).nodes) == nodes


def test_further_tries_cost_no_pod_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    world = snapshot(pod(preferred_nodes=prefers((1, keys.ZONE, C))))
    monkeypatch.setattr(weighing, "Work", lambda _steps: Work(0))
    plan = decide(world, under(WEIGH))
    assert zones_of(plan) == {"a": A}
    assert kept(plan) == (0, 1)


def test_pods_near_others_and_apart_from_others_are_counted() -> None:
    # Of two that want to be together in a zone both are; of two that want to be apart none is.
    near = webs(2, affinity=(make.affinity(keys.ZONE, weight=1),))
    assert kept(decide(snapshot(*near), under(WEIGH))) == (2, 2)
    apart = webs(2, anti_affinity=APART)
    assert kept(decide(snapshot(*apart), under(WEIGH))) == (0, 2)
    alone = webs(1, affinity=(make.affinity(keys.ZONE, weight=1),))
    assert kept(decide(snapshot(*alone), under(WEIGH))) == (0, 1)


def test_pods_that_stand_are_counted() -> None:
    other = pod("other", node_name="n1", labels={"app": "web"}, cpu=1900)
    world = snapshot(
        pod(affinity=(make.affinity(keys.ZONE, weight=1),)),
        nodes=(in_zone(B, "n1"),),
        bound=(other,),
    )
    plan = decide(world, under(WEIGH))
    assert zones_of(plan) == {"a": B}
    assert kept(plan) == (1, 1)


def test_a_spread_is_kept_by_pods_in_no_crowded_domain() -> None:
    plan = decide(snapshot(*webs(3, spreads=EVENLY)), under(RESPECT))
    assert kept(plan) == (3, 3)
    crowd = tuple(pod(f"s{n}", node_name="n1", labels={"app": "web"}, cpu=10) for n in range(3))
    only = provisioner(also=needs(keys.ZONE, "In", A))
    standing = (in_zone(A, "n1"), in_zone(B, "n2", unschedulable=True))
    world = snapshot(*webs(1, spreads=EVENLY), nodes=standing, bound=crowd, provisioners=(only,))
    assert kept(decide(world, under(RESPECT))) == (0, 1)


def test_a_spread_looks_at_the_nodes_that_its_pod_may_run_on() -> None:
    wanted = webs(1, spreads=EVENLY, node_selector=needs(keys.ZONE, "In", A))
    elsewhere = webs(1, cpu=100)[0]
    other = replace(elsewhere, name="other", uid="other")
    world = snapshot(*wanted, other, nodes=(in_zone(B, "n1"),))
    plan = decide(world, under(WEIGH))
    assert there(plan) == {"other": "n1"}
    assert kept(plan) == (1, 1)


def test_a_spread_over_hosts_looks_at_the_hosts_there_are() -> None:
    over = (make.spread(keys.HOSTNAME, hard=False),)
    empty = in_zone(B, "n1", allocatable=Resources.of(cpu=10, pods=10))
    world = snapshot(*webs(2, spreads=over), nodes=(empty,))
    # Both on one new node, beside one without any.
    plan = decide(world, under(WEIGH))
    assert (len(plan.nodes), kept(plan)) == (1, (0, 2))


def test_a_zone_that_is_still_open_keeps_no_preference_about_zones() -> None:
    wanted = webs(1, affinity=(make.affinity(keys.ZONE, weight=1),))
    plan = decide(snapshot(*wanted), under(WEIGH, preference_price_percent=0))
    assert kept(plan) == (0, 1)


def test_pods_share_the_price_of_their_node_by_what_they_take_most_of() -> None:
    world = snapshot(
        pod("a", cpu=1200, memory=make.GIB),
        *pods(2, "b", cpu=100, memory=2 * make.GIB),
        pod("c", cpu=10),
        nodes=(make.node(allocatable=Resources.of(cpu=20, memory=make.GIB, pods=9)),),
    )
    plan_state = initial_state(world, world.pending, QUICK, Work(1_000_000))
    solve.solve(plan_state, plan_state.pod_groups)
    names = [group.pod_class.pods[0].name[0] for group in plan_state.pod_groups]
    paid = dict(zip(names, weighing.costs_by_group(plan_state), strict=True))
    (bought,) = (spot for spot in plan_state.targets if spot.options)
    size = plan_state.table.offers[bought.options[0].offer].available
    price = bought.options[0].offering.price_micros_per_hour
    of_a, of_b = 1200 / size["cpu"], 2 * 2 * make.GIB / size["memory"]
    assert paid["a"] == pytest.approx(price * of_a / (of_a + of_b), rel=1e-4)
    assert paid["b"] == pytest.approx(price * of_b / (of_a + of_b), rel=1e-4)
    assert paid["c"] == 0
