"""Small batches whose pods look at each other: zones and nodes are chosen for all at once."""

from collections import Counter
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.pods import AffinityTerm, Pod
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.planning.decide import decide
from shared.planning.together import place_together
from tests import builders as make
from tests.builders import pod, pods, snapshot
from tests.unit.planning.asking import QUICK, A, B, C, in_zone, there, together, why, zones_of

IN_C = Requirements.of((Requirement.of(keys.ZONE, C),))


def near(app: str, key: str = keys.HOSTNAME) -> tuple[AffinityTerm, ...]:
    return (make.affinity(key, selector=make.selector(app=app)),)


def of(app: str, count: int = 1, **more: Any) -> tuple[Pod, ...]:
    return pods(count, app, labels={"app": app}, **more)


def test_a_chain_over_hosts_and_zones_is_placed_whole() -> None:
    plan = decide(
        snapshot(
            *of("a", cpu=100),
            *of("b", cpu=3000, affinity=near("a")),
            *of("c", cpu=3000, affinity=near("b", keys.ZONE), node_selector=IN_C),
        ),
        QUICK,
    )
    assert why(plan) == {}
    assert set(zones_of(plan).values()) == {C}
    assert ["a000", "b000"] in together(plan) or together(plan) == [["a000", "b000", "c000"]]


def test_pods_wait_that_would_keep_more_others_from_their_place() -> None:
    rule = make.spread(honor_affinity=False)
    zones = Requirements.of((Requirement.of(keys.ZONE, B, C),))
    even = of("web", 4, cpu=900, spreads=(rule,), node_selector=zones)
    in_a = Requirements.of((Requirement.of(keys.ZONE, A),))
    other = pod("other", namespace="other", cpu=1800, node_selector=in_a)
    # A node of the other's would make its zone a domain, which stays empty.
    plan = decide(snapshot(*even, other), QUICK)
    assert set(why(plan)) == {"other"}


@pytest.mark.parametrize("limit", ["_VECTORS", "_TARGETS", "_DOMAINS", "_ASSIGNMENTS", "_TRIES"])
def test_larger_batches_are_placed_one_step_after_the_other(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = -1 if limit == "_TARGETS" else 0 if limit != "_TRIES" else 1
    monkeypatch.setattr(place_together, limit, most)
    monkeypatch.setattr(place_together, "_order", lambda *_: None)
    plan = decide(snapshot(*of("a", 2, cpu=100), *of("b", 2, cpu=900, affinity=near("a"))), QUICK)
    assert why(plan) == {}


def test_nodes_that_stand_are_used_first_and_evenly() -> None:
    spread = (make.spread(keys.HOSTNAME, selector=make.selector(app="b")),)
    plan = decide(
        snapshot(
            *of("a", cpu=1000),
            *of("b", 4, cpu=100, affinity=near("a", keys.ZONE), spreads=spread),
            nodes=(in_zone(A, "n1"), in_zone(A, "n2")),
        ),
        QUICK,
    )
    assert plan.nodes == ()
    on = there(plan)
    assert Counter(on[f"b{number:03}"] for number in range(4)) == {"n1": 2, "n2": 2}


def test_pods_that_ask_for_each_other_go_to_one_host_as_many_as_it_holds() -> None:
    plan = decide(
        snapshot(*of("web", 3, cpu=3500, affinity=near("web")), *of("db", cpu=100)), QUICK
    )
    assert sorted(why(plan)) in (["web000"], ["web001"], ["web002"])
    assert len({tuple(names) for names in together(plan) if "web" in "".join(names)}) == 1


def test_domains_that_are_too_few_may_become_enough() -> None:
    spread = (make.spread(selector=make.selector(app="b"), min_domains=3),)
    plan = decide(
        snapshot(*of("a", 3, cpu=100), *of("b", 3, cpu=500, affinity=near("a"), spreads=spread)),
        QUICK,
    )
    assert why(plan) == {}
    zones = zones_of(plan)
    assert {zones[f"b{number:03}"] for number in range(3)} == {A, B, C}


def test_nodes_without_the_label_of_a_rule_take_no_pods_under_it() -> None:
    (lead,) = of("a", node_name="n1", cpu=100)
    bare = make.node(labels={k: v for k, v in make.node().labels.items() if k != "rack"})
    racked = make.node("n2", labels={**make.node("n2").labels, "rack": "r1"})
    racks = near("a", "rack")
    plan = decide(
        snapshot(*of("b", cpu=100, affinity=racks), *of("c"), nodes=(bare, racked), bound=(lead,)),
        QUICK,
    )
    assert set(why(plan)) == {"b000"}
    assert set(there(plan)) == {"c000"}


def test_limits_that_refuse_a_node_leave_pods_waiting_for_that_reason() -> None:
    limits = Resources.of(cpu=2000)
    plan = decide(
        snapshot(
            *of("a", 2, cpu=1500, anti_affinity=near("a")),
            *of("b", cpu=100, affinity=near("a")),
            provisioners=(make.provisioner(limits=limits),),
        ),
        QUICK,
    )
    (reason,) = why(plan).values()
    assert "its limits are in the way" in reason


def test_host_ports_keep_followers_apart() -> None:
    port = (("0.0.0.0", "TCP", 80),)
    plan = decide(
        snapshot(*of("a", 2, cpu=100), *of("b", 2, cpu=100, affinity=near("a"), host_ports=port)),
        QUICK,
    )
    assert [len(names) for names in together(plan)] == [2, 2]
    assert why(plan) == {}


def test_pods_are_near_others_over_several_keys_at_once() -> None:
    plan = decide(
        snapshot(
            *of("a", 2, cpu=1800),
            *of("b", 2, cpu=500, affinity=near("a", keys.ZONE), node_selector=IN_C),
            *of("c", 2, cpu=500, affinity=near("b", keys.ARCH)),
        ),
        QUICK,
    )
    assert why(plan) == {}
    zones = zones_of(plan)
    assert C in {zones["a000"], zones["a001"]}


def test_pods_that_a_spread_counts_are_dealt_evenly_where_kube_scheduler_binds_those_spread() -> (
    None
):
    judged = of("web", 3, cpu=100, spreads=(make.spread(),), claims=("data",))
    plan = decide(snapshot(*judged, *pods(7, "counted", cpu=1000)), QUICK)
    assert sorted(Counter(zones_of(plan).values()).values()) == [3, 3, 4]
