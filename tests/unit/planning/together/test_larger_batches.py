"""Batches of many pods that must be near each other: bundles, and zones followers can reach."""

from collections import Counter
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.pods import AffinityTerm, Pod
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.plan import Plan
from shared.model.requirements import Requirement, Requirements
from shared.planning.decide import decide
from shared.planning.together import place_together
from tests import builders as make
from tests.builders import pods, snapshot
from tests.unit.planning.asking import QUICK, A, B, C, why, zones_of

IN_C = Requirements.of((Requirement.of(keys.ZONE, C),))
LARGE = 96_000  # An m5.large of two cores, in micro-dollars per hour.


def near(app: str, key: str = keys.HOSTNAME) -> tuple[AffinityTerm, ...]:
    return (make.affinity(key, selector=make.selector(app=app)),)


def of(app: str, count: int, **more: Any) -> tuple[Pod, ...]:
    return pods(count, f"{app}-", labels={"app": app}, **more)


def apps(node: PlannedNode) -> Counter[str]:
    return Counter(ref.name.partition("-")[0] for ref in node.pods)


def decided(*pending: Pod, **more: Any) -> Plan:
    """Return the plan, all of whose pods have a place."""
    plan = decide(snapshot(*pending, **more), QUICK)
    assert why(plan) == {}
    return plan


@pytest.mark.parametrize("count", [30, 60])
def test_caches_and_web_servers_that_are_kept_apart_go_in_pairs(count: int) -> None:
    plan = decided(
        *of("cache", count, cpu=200, anti_affinity=near("cache")),
        *of("web", count, cpu=1000, anti_affinity=near("web"), affinity=near("cache")),
    )
    assert Counter(tuple(sorted(apps(node).items())) for node in plan.nodes) == {
        (("cache", 1), ("web", 1)): count
    }
    assert plan.cost_micros_per_hour <= count * (LARGE + 2)


@pytest.mark.parametrize(
    "by", [{"node_selector": IN_C}, {"volume_terms": ((IN_C,),)}], ids=["selector", "volume"]
)
@pytest.mark.parametrize("leads", [1, 3])
def test_leads_go_to_the_zone_that_their_followers_are_kept_in(
    leads: int, by: dict[str, Any]
) -> None:
    zone = near("lead", keys.ZONE)
    plan = decided(*of("lead", leads, cpu=300), *of("near", 20, cpu=700, affinity=zone, **by))
    zones = zones_of(plan)
    assert {zones[name] for name in zones if name.startswith("near")} == {C}
    assert C in {zones[name] for name in zones if name.startswith("lead")}


def test_leads_go_to_the_zone_of_the_only_pool_that_their_followers_select() -> None:
    only = Taint(key="db", effect=Effect.NO_SCHEDULE)
    plan = decided(
        *of("lead", 2, cpu=300),
        *of(
            "near",
            20,
            cpu=700,
            affinity=near("lead", keys.ZONE),
            node_selector=Requirements.of((Requirement.of("pool", "db"),)),
            tolerations=(*make.DEFAULT_TOLERATIONS, Toleration(key="db", operator="Exists")),
        ),
        provisioners=(
            make.provisioner(weight=10),
            make.provisioner("db", also=(Requirement.of("pool", "db"),), taints=(only,)),
        ),
        sites=(make.site(), make.site("db", (B,))),
    )
    assert {zones_of(plan)[f"near-{number:03}"] for number in range(20)} == {B}


def test_a_chain_of_zones_begins_where_its_end_can_be() -> None:
    plan = decided(
        *of("first", 20, cpu=300),
        *of("second", 20, cpu=300, affinity=near("first", keys.ZONE)),
        *of("third", 20, cpu=300, affinity=near("second", keys.ZONE), node_selector=IN_C),
    )
    zones = zones_of(plan)
    assert {zones[name] for name in zones if name.startswith("third")} == {C}


@pytest.mark.parametrize("key", [keys.ZONE, keys.HOSTNAME])
@pytest.mark.parametrize("leads", [3, 10, 20])
def test_leads_without_rules_stand_in_each_zone_that_followers_are_spread_over(
    key: str, leads: int
) -> None:
    even = (make.spread(selector=make.selector(app="near")),)
    plan = decided(
        *of("lead", leads, cpu=100),
        *of("near", 21, cpu=500, affinity=near("lead", key), spreads=even),
    )
    zones = zones_of(plan)
    shares = Counter(zone for name, zone in zones.items() if name.startswith("near"))
    assert shares == {A: 7, B: 7, C: 7}


@pytest.mark.parametrize(("leads", "followers"), [(2, 20), (5, 40), (30, 30), (20, 100), (100, 20)])
def test_followers_of_leads_without_rules_share_hosts_at_little_more_than_their_sum(
    leads: int, followers: int
) -> None:
    plan = decided(
        *of("lead", leads, cpu=100), *of("near", followers, cpu=500, affinity=near("lead"))
    )
    for node in plan.nodes:
        assert apps(node)["lead"]
    asked = 100 * leads + 500 * followers
    assert plan.cost_micros_per_hour <= 1.3 * asked * LARGE / 1900


def test_a_chain_of_hosts_is_packed_as_one() -> None:
    plan = decided(
        *of("first", 20, cpu=200),
        *of("second", 20, cpu=600, affinity=near("first")),
        *of("third", 20, cpu=600, affinity=near("second")),
    )
    for found in map(apps, plan.nodes):
        assert bool(found["third"]) <= bool(found["second"]) <= bool(found["first"])
    assert plan.cost_micros_per_hour <= 1.3 * 20 * 1400 * LARGE / 1900


def test_followers_whose_host_ports_keep_them_apart_go_to_as_many_hosts() -> None:
    port = (("0.0.0.0", "TCP", 80),)
    plan = decided(
        *of("lead", 30, cpu=100), *of("near", 20, cpu=100, affinity=near("lead"), host_ports=port)
    )
    assert [apps(node)["near"] for node in plan.nodes if apps(node)["near"]] == [1] * 20


def test_followers_that_are_spread_over_hosts_go_to_as_many_as_their_skew_asks() -> None:
    even = (make.spread(keys.HOSTNAME, 2, selector=make.selector(app="near")),)
    plan = decided(
        *of("lead", 30, cpu=100), *of("near", 20, cpu=300, affinity=near("lead"), spreads=even)
    )
    assert max(apps(node)["near"] for node in plan.nodes) <= 2


def test_followers_that_can_never_be_on_the_host_of_their_leads_wait_alone() -> None:
    in_a = Requirements.of((Requirement.of(keys.ZONE, A),))
    plan = decide(
        snapshot(
            *of("lead", 20, cpu=100, node_selector=in_a),
            *of("near", 20, cpu=300, affinity=near("lead"), node_selector=IN_C),
        ),
        QUICK,
    )
    assert {name.partition("-")[0] for name in why(plan)} == {"near"}
    assert len(why(plan)) == 20


def test_pods_that_follow_one_pod_and_prefer_another_are_on_a_host_with_both() -> None:
    preferred = [
        make.affinity(selector=make.selector(app=app), weight=100) for app in ("proxy", "cache")
    ]
    plan = decided(
        *of("cache", 15, cpu=200),
        *of("proxy", 15, cpu=300),
        *of("log", 15, cpu=100, affinity=near("cache")),
        *of("web", 15, cpu=600, affinity=(*near("log"), *preferred)),
    )
    for found in map(apps, plan.nodes):
        assert bool(found["web"]) <= (found["log"] > 0 and found["proxy"] > 0)


def test_groups_that_follow_each_other_in_a_circle_wait() -> None:
    plan = decide(
        snapshot(
            *of("one", 20, cpu=100, affinity=near("two")),
            *of("two", 20, cpu=200, affinity=near("one")),
        ),
        QUICK,
    )
    assert len(why(plan)) == 40


@pytest.mark.parametrize(("ports", "left"), [((), 0), ((("0.0.0.0", "TCP", 80),), 1)])
def test_nodes_of_pods_that_ask_for_each_other_grow_for_those_that_come_later(
    ports: tuple[tuple[str, str, int], ...], left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_together, "_VECTORS", 0)
    plan = decide(
        snapshot(
            *of("web", 10, cpu=10, memory=16 * make.MIB, affinity=near("web"), priority=9),
            *pods(
                2, "late", cpu=1500, labels={"app": "web"}, affinity=near("web"), host_ports=ports
            ),
        ),
        QUICK,
    )
    assert len(plan.nodes) == 1
    assert len(why(plan)) == left


def test_pods_that_ask_for_each_other_and_do_not_fit_on_one_host_wait() -> None:
    plan = decide(snapshot(*of("web", 250, cpu=100, affinity=near("web"))), QUICK)
    assert len(plan.nodes) == 1
    assert why(plan)


def test_two_kinds_of_followers_share_the_hosts_of_their_leads() -> None:
    plan = decided(
        *of("lead", 20, cpu=100),
        *of("many", 20, cpu=300, affinity=near("lead")),
        *of("few", 5, cpu=600, affinity=near("lead")),
    )
    for found in map(apps, plan.nodes):
        assert found["lead"] > 0
