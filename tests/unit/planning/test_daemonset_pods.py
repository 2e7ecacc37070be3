"""Pods of DaemonSets count for the rules of others on nodes still to come."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.resources import Resources
from shared.model.values import replace
from shared.planning.decide import decide
from tests import builders as make
from tests.builders import needs, pod, provisioner, snapshot
from tests.unit.planning.asking import QUICK, A, B, C, agent, there, together, why, zones_of

AGENT = make.selector(app="agent")
SPREAD_OF_TWO = make.spread(keys.HOSTNAME, selector=AGENT, max_skew=2)


def apart(key: str = keys.HOSTNAME) -> Any:
    return (make.affinity(key, selector=AGENT),)


def test_a_pod_that_avoids_what_every_node_runs_waits() -> None:
    plan = decide(snapshot(pod(anti_affinity=apart()), daemonsets=(agent(),)), QUICK)
    assert "pod anti-affinity over kubernetes.io/hostname" in why(plan)["a"]
    assert not plan.nodes


def test_it_gets_a_node_that_the_daemons_leave_out() -> None:
    only_arm = agent(node_selector=needs(keys.ARCH, "In", "arm64"))
    both = provisioner(also=needs(keys.ARCH, "In", "amd64", "arm64"))
    world = snapshot(pod(anti_affinity=apart()), daemonsets=(only_arm,), provisioners=(both,))
    (node,) = decide(world, QUICK).nodes
    assert {option.offering.instance_type[:2] for option in node.options} == {"m5"}


def test_daemons_of_a_zone_keep_its_nodes_from_pods_that_avoid_them() -> None:
    in_a = agent(node_selector=needs(keys.ZONE, "In", A))
    alone = pod("alone", anti_affinity=apart(keys.ZONE))
    plan = decide(snapshot(alone, pod("b", cpu=1500), daemonsets=(in_a,)), QUICK)
    assert not why(plan)
    assert zones_of(plan)["alone"] != A


def test_a_later_node_with_daemons_sends_earlier_pods_elsewhere_or_back() -> None:
    alone = pod("alone", priority=9, anti_affinity=apart(keys.ZONE))
    tied = pod("tied", node_selector=needs(keys.ZONE, "In", A))
    world = snapshot(alone, tied, daemonsets=(agent(),), sites=(make.site(zones=(A,)),))
    plan = decide(world, QUICK)
    assert together(plan) == [["tied"]]
    assert set(why(plan)) == {"alone"}


def test_daemons_that_avoid_others_keep_them_away() -> None:
    shy = agent(anti_affinity=(make.affinity(selector=make.selector(app="web")),))
    plan = decide(snapshot(pod(), pod("db", labels={"app": "db"}), daemonsets=(shy,)), QUICK)
    assert "the anti-affinity over kubernetes.io/hostname of other pods" in why(plan)["a"]
    assert together(plan) == [["db"]]


def test_followers_of_daemons_find_them_on_a_node_in_flight() -> None:
    near = pod(affinity=apart())
    slot = make.slot()
    assert there(decide(snapshot(near, slots=(slot,), daemonsets=(agent(),)), QUICK)) == {
        "a": slot.name
    }


@pytest.mark.parametrize(
    ("zones", "left"), [((A,), {B, C}), ((A, B), {C}), ((A, B, C), set[str]())]
)
def test_daemons_of_a_node_without_a_machine_count_wherever_it_may_come_up(
    zones: tuple[str, ...], left: set[str]
) -> None:
    on_large = agent(node_selector=needs(keys.INSTANCE_TYPE, "In", "m5.large"))
    promised = pod("there", labels={})
    options = tuple(make.option(zone=zone) for zone in zones)
    alone = pod(
        anti_affinity=apart(keys.ZONE), node_selector=needs(keys.INSTANCE_TYPE, "In", "m5.xlarge")
    )
    world = snapshot(
        promised,
        alone,
        daemonsets=(on_large,),
        launching=(make.planned(promised, options=options),),
        promised=frozenset({promised.uid}),
    )
    plan = decide(world, QUICK)
    assert set(zones_of(plan).values()) <= left
    assert bool(why(plan)) is not bool(left)


def test_daemons_of_a_ready_node_count_as_the_pods_they_are() -> None:
    owner = replace(make.REPLICA_SET, kind="DaemonSet", name="agent")
    stands = pod("agent-x", node_name="n1", labels={"app": "agent"}, owner=owner, cpu=100)
    world = snapshot(
        pod(affinity=apart()), nodes=(make.node("n1"),), bound=(stands,), daemonsets=(agent(),)
    )
    assert there(decide(world, QUICK)) == {"a": "n1"}


def test_daemons_that_a_ready_node_still_lacks_keep_away_those_that_avoid_them() -> None:
    world = snapshot(pod(anti_affinity=apart()), nodes=(make.node("n1"),), daemonsets=(agent(),))
    assert there(decide(world, QUICK)) == {}


def test_a_daemon_that_is_there_already_is_counted_once() -> None:
    owner = replace(make.REPLICA_SET, kind="DaemonSet", name="agent")
    stands = pod("agent-x", node_name="n1", labels={"app": "agent"}, owner=owner, cpu=100)
    labels = {**make.node().labels, keys.HOSTNAME: "n1", keys.ZONE: A}
    labels.pop(keys.INITIALIZED, None)
    node = make.node("n1", labels=labels, allocatable=Resources(), ready=False)
    follower = pod(labels={"app": "agent"}, spreads=(SPREAD_OF_TWO,))
    world = snapshot(
        follower,
        nodes=(node,),
        slots=(make.slot(instance_id="i-n1"),),
        bound=(stands,),
        daemonsets=(agent(),),
    )
    assert set(there(decide(world, QUICK))) == {"a"}


def test_a_node_whose_pods_went_elsewhere_takes_its_daemons_along() -> None:
    crowd = [pod(f"c{n}", cpu=1200, anti_affinity=apart(keys.ZONE)) for n in range(2)]
    only_b = agent(node_selector=needs(keys.ZONE, "In", B))
    plan = decide(snapshot(*crowd, daemonsets=(only_b,)), QUICK)
    assert not why(plan)
    assert B not in zones_of(plan).values()


def test_a_pod_near_a_daemon_gets_a_node_that_the_daemon_comes_with() -> None:
    on_large = agent(node_selector=needs(keys.INSTANCE_TYPE, "In", "m5.xlarge"))
    plan = decide(snapshot(pod(affinity=apart()), daemonsets=(on_large,)), QUICK)
    (node,) = plan.nodes
    assert {option.offering.instance_type for option in node.options} == {"m5.xlarge"}
    nowhere = agent(node_selector=needs(keys.INSTANCE_TYPE, "In", "m5.metal"))
    plan = decide(snapshot(pod(affinity=apart()), daemonsets=(nowhere,)), QUICK)
    assert "pod affinity over kubernetes.io/hostname" in why(plan)["a"]


def test_a_pod_that_avoids_a_daemon_gets_a_node_of_the_pool_that_the_daemon_does_not_tolerate() -> (
    None
):
    bare = Taint(key="bare", effect=Effect.NO_SCHEDULE)
    pools = (provisioner("a"), provisioner("b", taints=(bare,)))
    world = snapshot(
        pod(anti_affinity=apart(), tolerations=(Toleration(key="bare", operator="Exists"),)),
        daemonsets=(agent(),),
        provisioners=pools,
        sites=tuple(make.site(pool.name) for pool in pools),
    )
    assert [node.provisioner for node in decide(world, QUICK).nodes] == ["b"]


def test_the_cheaper_of_two_zones_is_taken_though_its_first_choice_has_daemons() -> None:
    on_small = agent(node_selector=needs(keys.INSTANCE_TYPE, "In", "m5.large"))
    world = snapshot(
        pod(anti_affinity=apart(keys.ZONE)),
        pod("b", cpu=7000, node_selector=needs(keys.ZONE, "In", C)),
        daemonsets=(on_small,),
    )
    plan = decide(world, QUICK)
    types = {
        ref.name: node.options[0].offering.instance_type for node in plan.nodes for ref in node.pods
    }
    assert not why(plan)
    assert types["a"] != "m5.large"


def test_pods_that_would_fit_a_larger_machine_stay_on_those_with_their_daemon() -> None:
    on_small = agent(node_selector=needs(keys.INSTANCE_TYPE, "In", "m5.large"))
    near = [pod(f"p{n}", cpu=1500, affinity=apart()) for n in range(2)]
    plan = decide(snapshot(*near, daemonsets=(on_small,)), QUICK)
    assert together(plan) == [["p0"], ["p1"]]
