"""Rules about other pods, preferences and volumes, decided case by case."""

from collections import Counter

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.pods import LabelSelector
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.offerings import domain_assignment
from tests import builders as make
from tests.builders import needs, pod, pods, provisioner, snapshot
from tests.unit.planning.asking import (
    DB,
    QUICK,
    A,
    B,
    C,
    in_zone,
    there,
    together,
    why,
    zones_of,
)


def test_followers_find_the_zone_of_pods_that_run_on_a_cordoned_node() -> None:
    db = pod("db", node_name="n1", labels={"app": "db"})
    node = in_zone(C, "n1", unschedulable=True)
    near = (make.affinity(keys.ZONE, selector=DB),)
    plan = decide(snapshot(*pods(2, affinity=near), nodes=(node,), bound=(db,)), QUICK)
    assert set(zones_of(plan).values()) == {C}


def test_pods_that_avoid_others_do_not_get_a_node_each() -> None:
    apart = (make.affinity(selector=DB),)
    shy = pods(4, "s", cpu=100, labels={"app": "shy"}, anti_affinity=apart)
    plan = decide(snapshot(*shy, *pods(2, "d", cpu=100, labels={"app": "db"})), QUICK)
    assert together(plan) == [["d000", "d001"], ["s000", "s001", "s002", "s003"]]


def test_pods_that_avoid_each_other_in_a_circle_are_all_placed() -> None:
    names = ("a", "b", "c")
    circle = [
        pod(
            name,
            cpu=100,
            labels={"app": name},
            anti_affinity=(make.affinity(selector=make.selector(app=other)),),
        )
        for name, other in zip(names, ("b", "c", "a"), strict=True)
    ]
    assert together(decide(snapshot(*circle), QUICK)) == [["a"], ["b"], ["c"]]


def test_several_spreads_hold_at_once() -> None:
    owner = provisioner(requirements=needs(keys.ARCH, "In", "amd64"))
    rules = (make.spread(), make.spread(keys.HOSTNAME), make.spread(keys.CAPACITY_TYPE))
    plan = decide(snapshot(*pods(6, cpu=100, spreads=rules), provisioners=(owner,)), QUICK)
    assert len(plan.nodes) == 6
    assert sorted(zones_of(plan).values()) == [A, A, B, B, C, C]
    kinds = [node.options[0].offering.capacity_type for node in plan.nodes]
    assert kinds.count(CapacityType.SPOT) == 3
    assert not any(node.fallback for node in plan.nodes)


def test_pods_that_spreads_only_count_are_dealt_evenly_where_kube_scheduler_binds_the_others() -> (
    None
):
    def asked(*claims: str) -> Plan:
        judged = pods(3, "judged", cpu=100, spreads=(make.spread(),), claims=claims)
        return decide(snapshot(*judged, *pods(61, "counted", cpu=1000)), QUICK)

    dealt, anywhere = asked("data"), asked()
    assert sorted(Counter(zones_of(dealt).values()).values()) == [21, 21, 22]
    found = zones_of(anywhere)
    assert {found[f"judged{number:03}"] for number in range(3)} == {A, B, C}
    assert anywhere.cost_micros_per_hour < dealt.cost_micros_per_hour


@pytest.mark.parametrize(("others", "last"), [(24, "host"), (4, "zone")])
def test_pods_with_rules_over_hosts_are_last_where_hardly_any_host_is_taken(
    others: int, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_assignment, "_MANY_GROUPS", 1)
    plan = decide(
        snapshot(
            *pods(3, "host", cpu=100, spreads=(make.spread(keys.HOSTNAME),)),
            *pods(3, "zone", cpu=200, spreads=(make.spread(),)),
            *pods(
                others, "apart", labels={"app": "db"}, anti_affinity=(make.affinity(selector=DB),)
            ),
        ),
        QUICK,
    )
    assert not plan.unschedulable
    ruled = [ref.name[:4] for ref in plan.order if ref.name[:4] in ("host", "zone")]
    assert ruled[-3:] == [last] * 3


TAINT = Taint(key="team", effect=Effect.NO_SCHEDULE)


def test_a_spread_that_leaves_no_place_names_the_emptiest_domain_and_what_volumes_allow() -> None:
    shut = make.node(labels={**make.node().labels, keys.ZONE: B}, taints=(TAINT,))
    volume = ((needs(keys.ZONE, "In", A),),)
    waiting = pods(2, cpu=100, spreads=(make.spread(),), volume_terms=volume)
    told = why(decide(snapshot(*waiting, nodes=(shut,)), QUICK))["p001"]
    assert (
        "topology spread over topology.kubernetes.io/zone with maxSkew 1 of pods with app=web, of "
        "which there are 0 in us-east-1b; volume: it can be used only where "
        "topology.kubernetes.io/zone in [us-east-1a]"
    ) in told


def test_a_node_that_lacks_one_of_the_keys_counts_for_no_spread() -> None:
    bare = make.node("bare", labels={keys.ZONE: A, keys.HOSTNAME: "bare"}, unschedulable=True)
    bound = pods(5, "x", node_name="bare")
    rules = (make.spread(), make.spread(keys.CAPACITY_TYPE))
    plan = decide(snapshot(pod(cpu=100, spreads=rules), nodes=(bare,), bound=bound), QUICK)
    assert plan.unschedulable == ()


def test_pods_that_are_being_deleted_count_for_affinity_but_not_for_spreads() -> None:
    going = pods(2, "x", node_name="n1", deletion_at=make.NOW)
    node = in_zone(A, "n1", unschedulable=True)
    even = decide(snapshot(*pods(3, spreads=(make.spread(),)), nodes=(node,), bound=going), QUICK)
    assert sorted(zones_of(even).values()) == [A, B, C]
    near = decide(
        snapshot(*pods(2, affinity=(make.affinity(keys.ZONE),)), nodes=(node,), bound=going), QUICK
    )
    assert set(zones_of(near).values()) == {A}


def test_a_nominated_pod_keeps_its_place_but_attracts_no_pod() -> None:
    guest = pod("guest", cpu=1500, nominated_node="n1", labels={"app": "db"})
    plan = decide(snapshot(guest, pod("b", cpu=1000), nodes=(make.node(),)), QUICK)
    assert there(plan) == {}
    near = pod("near", cpu=10, affinity=(make.affinity(keys.ZONE, selector=DB),))
    assert why(decide(snapshot(guest, near, nodes=(make.node(),)), QUICK))["near"]
    rule = make.affinity(selector=DB)
    shy = pod("shy", cpu=10, labels={}, anti_affinity=(rule,))
    assert there(decide(snapshot(guest, shy, nodes=(make.node(),)), QUICK)) == {}
    alike = pod("alike", cpu=10, labels={"app": "db"}, affinity=(make.affinity(selector=DB),))
    joined = decide(snapshot(guest, alike, nodes=(make.node(),)), QUICK)
    assert there(joined) == {"alike": "n1"}


def test_nodes_on_their_way_count_wherever_they_may_come_up() -> None:
    promised = pods(1, "p")
    launched = make.planned(*promised, options=(make.option(), make.option(zone=B)))
    world = snapshot(
        *promised,
        *pods(1, "q", anti_affinity=(make.affinity(keys.ZONE),)),
        launching=(launched,),
        promised=frozenset(other_pod.uid for other_pod in promised),
    )
    assert zones_of(decide(world, QUICK)) == {"q000": C}
    sure = replace(world, launching=(replace(launched, options=(make.option(),)),))
    assert zones_of(decide(sure, QUICK))["q000"] in (B, C)


@pytest.mark.parametrize(
    ("chosen", "zone"),
    [
        (LabelSelector(), {C}),
        (make.selector(team="red"), {C}),
        (make.selector(team="x"), {A, B, C}),
    ],
)
def test_namespaces_are_found_by_their_labels(chosen: LabelSelector, zone: set[str]) -> None:
    term = make.affinity(keys.ZONE, selector=DB, namespaces=(), namespace_selector=chosen)
    db = pod("db", node_name="n1", namespace="shop", labels={"app": "db"})
    world = snapshot(
        pod("p", affinity=(replace(term, weight=1),)),
        nodes=(in_zone(C, "n1", unschedulable=True),),
        bound=(db,),
        namespaces={"shop": {"team": "red"}},
    )
    assert set(zones_of(decide(world, QUICK)).values()) <= zone
    required = replace(world, pending=(pod("p", affinity=(term,)),))
    assert bool(decide(required, QUICK).unschedulable) == (zone == {A, B, C})


def test_a_rule_without_a_selector_is_the_reason_shown() -> None:
    term = make.affinity(keys.ZONE, selector=None)
    assert "labelSelector is missing" in why(decide(snapshot(pod(affinity=(term,))), QUICK))["a"]
    needy = make.affinity(keys.ZONE, selector=LabelSelector(requirements=needs("x", "Exists")))
    assert "pods with x exists" in why(decide(snapshot(pod(affinity=(needy,))), QUICK))["a"]
    other = make.affinity(keys.ZONE, selector=LabelSelector(), namespaces=("shop",))
    assert "to any pods" in why(decide(snapshot(pod(affinity=(other,))), QUICK))["a"]


def test_volumes_are_never_dropped() -> None:
    bound = pod(volume_terms=((needs(keys.ZONE, "In", B), needs(keys.ZONE, "In", C)),))
    assert zones_of(decide(snapshot(bound), QUICK))["a"] in (B, C)
    lost = pod(volume_terms=((needs(keys.ZONE, "In", "mars"),),))
    assert why(decide(snapshot(lost), QUICK))["a"] == (
        "default: volume: it can be used only where topology.kubernetes.io/zone in [mars]"
    )
    torn = pod(volume_terms=((needs(keys.ZONE, "In", B),),), node_selector=needs("x", "Exists"))
    assert "needs x exists" in why(decide(snapshot(torn), QUICK))["a"]


def test_of_many_classes_with_rules_over_hosts_all_are_placed() -> None:
    waiting = [
        pod(
            f"w{number:03}",
            cpu=100 + number,
            labels={"app": f"app{number % 5}"},
            spreads=(make.spread(keys.HOSTNAME, selector=make.selector(app=f"app{number % 5}")),),
        )
        for number in range(170)
    ]
    alone = pods(
        60,
        "z",
        cpu=50,
        labels={"app": "z"},
        anti_affinity=(make.affinity(selector=make.selector(app="z")),),
    )
    plan = decide(snapshot(*waiting, *alone), QUICK)
    assert plan.unschedulable == ()
    assert len(plan.order) == 230


def test_limits_let_pods_use_hosts_that_are_there_as_evenly_as_they_are() -> None:
    none = provisioner(limits=Resources((("cpu", 0),)))
    nodes = (in_zone(A, "n1"), in_zone(B, "n2"))
    bound = (pod("x1", node_name="n1", cpu=10), pod("x2", node_name="n2", cpu=10))
    waiting = pods(6, cpu=10, spreads=(make.spread(keys.HOSTNAME),))
    plan = decide(snapshot(*waiting, nodes=nodes, bound=bound, provisioners=(none,)), QUICK)
    assert sorted(there(plan).values()) == ["n1"] * 3 + ["n2"] * 3
    free = pods(2, cpu=10, host_ports=(("10.0.0.1", "TCP", 80),))
    ported = decide(snapshot(*free, nodes=nodes[:1], provisioners=(none,)), QUICK)
    assert len(ported.unschedulable) == 1


def test_a_spread_counts_no_zone_that_only_a_provisioner_without_anything_left_could_open() -> None:
    owners = (provisioner("full", limits=Resources.of(cpu=1000), weight=9), provisioner("spare"))
    sites = (make.site("full", zones=(A, B)), make.site("spare", zones=(C,)))
    world = snapshot(*pods(4, spreads=(make.spread(),)), provisioners=owners, sites=sites)
    assert list(zones_of(decide(world, QUICK)).values()) == [C] * 4
    # A zone with a node counts.
    standing = in_zone(A, "n1", allocatable=Resources.of(cpu=0, pods=9))
    plan = decide(replace(world, nodes=(standing,)), QUICK)
    assert (len(zones_of(plan)), len(why(plan))) == (1, 3)


def test_pods_of_different_addresses_share_a_host_port() -> None:
    one = pod("one", cpu=10, host_ports=(("10.0.0.1", "TCP", 80),))
    two = pod("two", cpu=10, host_ports=(("10.0.0.2", "TCP", 80),))
    assert together(decide(snapshot(one, two), QUICK)) == [["one", "two"]]
    daemon = make.daemonset(host_ports=(("0.0.0.0", "TCP", 80),))
    refused = decide(snapshot(one, daemonsets=(daemon,)), QUICK)
    assert len(refused.unschedulable) == 1
    slot = snapshot(one, daemonsets=(daemon,), slots=(make.slot(),), provisioners=())
    assert decide(slot, QUICK).placements == ()


def test_priority_decides_which_pods_get_the_rest() -> None:
    limited = provisioner(limits=Resources.of(cpu=2000))
    high = pod("z", cpu=1500, priority=100, affinity=(make.affinity(selector=DB, weight=3),))
    plan = decide(snapshot(pod("a", cpu=1500), high, provisioners=(limited,)), QUICK)
    assert together(plan) == [["z"]]
    large = pod("l", cpu=90_000, priority=7)
    assert list(why(decide(snapshot(large, pod("a")), QUICK))) == ["l"]


def test_a_node_opens_no_more_than_one_domain_that_a_spread_does_not_know() -> None:
    spread_out = pod("x", labels={"app": "web"}, cpu=100, spreads=(make.spread(keys.ARCH),))
    small = make.node("n1", allocatable=Resources.of(cpu=100, memory=make.GIB, pods=9))
    arm = make.instance_type("m6g.large", arch="arm64", price=90_000)
    types = (make.instance_type(), arm)
    beside_its_like = pod(
        "y", labels={"app": "db"}, cpu=1500, affinity=(make.affinity(selector=DB),)
    )
    any_arch = make.provisioner(requirements=needs(keys.CAPACITY_TYPE, "In", "on-demand"))
    plan = decide(
        snapshot(
            *(spread_out, beside_its_like),
            nodes=(small,),
            instance_types=types,
            provisioners=(any_arch,),
        ),
        QUICK,
    )
    assert there(plan) == {"x": "n1"}
    (node,) = plan.nodes
    assert {option.offering.instance_type for option in node.options} == {"m6g.large"}


def one_on_each(hosts: int) -> dict[str, object]:
    """Return nodes with room, one pod of `web` on each."""
    names = [f"n{number}" for number in range(hosts)]
    return {
        "nodes": tuple(in_zone(A, name) for name in names),
        "bound": tuple(pod(f"on-{name}", cpu=100, node_name=name) for name in names),
    }


def test_hosts_that_stand_are_spread_over_as_kube_scheduler_does() -> None:
    spread = (make.spread(keys.HOSTNAME),)
    plan = decide(snapshot(*pods(5, cpu=100, spreads=spread), **one_on_each(3)), QUICK)
    assert sorted(Counter(there(plan).values()).values()) == [1, 2, 2]
    assert plan.nodes == ()


def test_a_new_host_is_compared_with_an_empty_one() -> None:
    spread = (make.spread(keys.HOSTNAME, 2),)
    plan = decide(snapshot(*pods(5, cpu=100, spreads=spread)), QUICK)
    assert sorted(map(len, together(plan))) == [1, 2, 2]


def test_a_new_host_without_pods_of_the_spread_counts_for_hosts_that_stand() -> None:
    """The third pod cannot be a second one on the node that stands, beside an empty new node."""
    big = pod("big", labels={"app": "db"}, cpu=3000, priority=1)
    more = pods(2, cpu=100, spreads=(make.spread(keys.HOSTNAME),))
    plan = decide(snapshot(big, *more, **one_on_each(1)), QUICK)
    assert plan.unschedulable == ()
    on_new = [ref.name for node in plan.nodes for ref in node.pods]
    assert sorted(on_new) in (["big", "p000"], ["big", "p001"])
