"""Pods that must or would rather stand together: hosts, zones and architectures."""

import itertools
from typing import Any

import pytest

from shared.model import labels as keys
from tests.karpenter_cases.scheduling.machines import node, slot
from tests.karpenter_cases.scheduling.market import MEDIUM, SMALL, A, B, C, machine
from tests.karpenter_cases.scheduling.outcome import Outcome, alone, solve
from tests.karpenter_cases.scheduling.writing import Raw, near, pod, pods, spread

ZONE, HOST, ARCH = keys.ZONE, keys.HOSTNAME, keys.ARCH
DB = {"app": "db"}
FULL = {"cpu": "10m", "memory": "1Mi", "pods": "0"}
FIVE_PODS = machine("m5.five", 16, 64, 700, pods=5)


def homes(outcome: Outcome, prefix: str = "") -> set[str]:
    return {home.name for name, home in outcome.homes.items() if name.startswith(prefix)}


def test_affinity_that_says_nothing_asks_for_nothing() -> None:
    outcome = solve(pod("a", affinity={}), pod("b", affinity={"podAffinity": {}}))
    assert outcome.is_placed("a", "b")


def test_pods_follow_another_onto_its_host() -> None:
    target = pod("db", cpu="100m", labels=DB)
    follower = pod("web", cpu="100m", together=[near(HOST, DB)])
    others = pods(10, "other", cpu="3", labels={"app": "other"})
    outcome = solve(target, follower, *others, market=(SMALL,))
    assert outcome.where("web") == outcome.where("db") != ""


def test_pods_follow_another_onto_its_architecture_though_not_its_host() -> None:
    hosts = [spread(HOST, match={"tier": "x"})]
    target = pod("db", labels={**DB, "tier": "x"}, selector={ARCH: "arm64"}, spreads=hosts)
    follower = pod("web", labels={"tier": "x"}, together=[near(ARCH, DB)], spreads=hosts)
    outcome = solve(target, follower)
    assert outcome.values(ARCH, "web") == {"arm64"}
    assert outcome.where("web") != outcome.where("db")


def test_pods_that_want_each_other_share_a_host() -> None:
    outcome = solve(*pods(3, cpu="2", together=[near(HOST)]))
    assert len(homes(outcome)) == 1
    assert len(outcome.homes) == 3


def test_only_the_first_host_is_chosen_freely_by_pods_that_want_each_other() -> None:
    outcome = solve(*pods(10, cpu="10m", together=[near(HOST)]), market=(FIVE_PODS,))
    assert len(homes(outcome)) == 1
    assert (len(outcome.homes), len(outcome.pending)) == (5, 5)


def test_pods_with_mutual_affinity_join_those_that_run() -> None:
    there = node("n-a", A)
    first = pod("first", cpu="100m", node="n-a", together=[near(HOST)])
    members = pods(3, cpu="100m", required=[[(ZONE, "In", B, C)]], together=[near(HOST)])
    outcome = solve(*members, nodes=(there,), bound=(first,))
    assert outcome.homes == {}
    assert all("affinity" in value for value in outcome.pending.values())


def test_pods_that_want_each_other_share_a_zone() -> None:
    outcome = solve(*pods(6, cpu="2", together=[near(ZONE)]), market=(SMALL,))
    assert len(outcome.new) > 1
    assert list(outcome.counts(ZONE).values()) == [6]


def test_one_that_is_tied_to_a_zone_draws_the_others_there() -> None:
    tied = pod("tied", cpu="2", together=[near(ZONE)], selector={ZONE: C})
    outcome = solve(*pods(3, cpu="2", together=[near(ZONE)]), tied, market=(SMALL,))
    assert outcome.counts(ZONE) == {C: 4}


def test_pods_that_want_each_other_join_the_zone_of_one_in_flight() -> None:
    first = pod("first", cpu="3500m", together=[near(ZONE)])
    flying = slot(zone=B, pods=[first])
    outcome = solve(first, pod("a", cpu="3500m", together=[near(ZONE)]), slots=(flying,))
    assert outcome.values(ZONE) == {B}
    assert len(outcome.new) == 1


def test_a_preference_for_a_pod_that_is_not_there_is_dropped() -> None:
    assert alone({"rather_together": [(50, near(HOST, DB))]}).is_placed("a")


def test_a_preference_against_a_requirement_is_dropped() -> None:
    """They would rather share a host, but must each have their own."""
    words: Raw = {
        "cpu": "100m",
        "spreads": [spread(HOST)],
        "rather_together": [(50, near(HOST))],
    }
    outcome = solve(*pods(3, **words))
    assert len(homes(outcome)) == 3
    assert outcome.pending == {}


def test_affinity_to_a_pod_that_is_not_there_keeps_the_pod_pending() -> None:
    outcome = solve(*pods(10, together=[near(ZONE, DB)]))
    assert outcome.new == ()
    assert len(outcome.pending) == 10
    assert all("affinity" in value for value in outcome.pending.values())


def test_pods_follow_another_into_whichever_zone_it_gets() -> None:
    followers = pods(10, "web", cpu="2", together=[near(ZONE, DB)])
    outcome = solve(*followers, pod("db", labels=DB), market=(SMALL,))
    assert len(outcome.homes) == 11
    assert len(outcome.counts(ZONE)) == 1


def test_pods_follow_another_into_the_zone_it_must_have() -> None:
    followers = pods(10, "web", cpu="2", together=[near(ZONE, DB)])
    target = pod("db", labels=DB, selector={ZONE: B})
    assert solve(*followers, target, market=(SMALL,)).counts(ZONE) == {B: 11}


def test_a_chain_of_affinities_ends_on_one_host() -> None:
    names = ("db", "api", "cache", "ui")
    members = [pod("db", labels=DB)] + [
        pod(name, labels={"app": name}, together=[near(HOST, {"app": before})])
        for before, name in itertools.pairwise(names)
    ]
    outcome = solve(*reversed(members), *pods(6, "other", cpu="3", labels={}))
    assert len({outcome.where(name) for name in names}) == 1
    assert outcome.is_placed(*names)


def test_a_chain_of_affinities_that_ends_nowhere_keeps_all_pending() -> None:
    names = ("db", "api", "cache", "ui")
    members = [pod("db", labels=DB, together=[near(HOST, {"app": "missing"})])] + [
        pod(name, labels={"app": name}, together=[near(HOST, {"app": before})])
        for before, name in itertools.pairwise(names)
    ]
    outcome = solve(*members)
    assert outcome.new == ()
    assert sorted(outcome.pending) == sorted(names)


@pytest.mark.parametrize(
    ("more", "follows"),
    [
        pytest.param({}, False, id="own"),
        pytest.param({"namespaces": ["other"]}, True, id="listed"),
        pytest.param({"namespaceSelector": {}}, True, id="every"),
    ],
)
def test_pods_are_looked_for_in_the_namespaces_that_are_meant(
    more: dict[str, Any], follows: Any
) -> None:
    target = pod("db", labels=DB, namespace="other", selector={ZONE: C})
    follower = pod("web", together=[near(ZONE, DB, **more)])
    outcome = solve(target, follower, market=(SMALL, MEDIUM))
    assert outcome.is_placed("db")
    assert outcome.is_placed("web") is follows
    if follows:
        assert outcome.values(ZONE, "web") == {C}
