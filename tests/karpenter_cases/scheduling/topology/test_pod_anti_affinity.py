"""Pods that must not or would rather not stand together, seen from both sides."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from tests.karpenter_cases.scheduling.machines import node
from tests.karpenter_cases.scheduling.market import ZONES, B
from tests.karpenter_cases.scheduling.outcome import Outcome, solve
from tests.karpenter_cases.scheduling.writing import near, pod, pods

ZONE, HOST, ARCH = keys.ZONE, keys.HOSTNAME, keys.ARCH
DB, SECRET = {"app": "db"}, {"app": "secret"}
FULL = {"cpu": "10m", "memory": "1Mi", "pods": "0"}


def apart(outcome: Outcome, value: str, other: str, key: str = ZONE) -> bool:
    """Return whether two pods cannot end in one domain, wherever their nodes are launched."""
    return not outcome.values(key, value) & outcome.values(key, other)


def in_every_zone(**words: Any) -> list[Pod]:
    """Return a pod for each zone; they come before others."""
    return [pod(f"in-{zone}", selector={ZONE: zone}, priority=10, **words) for zone in ZONES]


def standing_in_every_zone(**words: Any) -> tuple[tuple[Node, ...], tuple[Pod, ...]]:
    nodes = tuple(node(f"n-{zone}", zone, allocatable=FULL) for zone in ZONES)
    return nodes, tuple(
        pod(f"old-{other_node.name}", node=other_node.name, **words) for other_node in nodes
    )


def test_a_preference_to_be_apart_is_dropped_when_there_is_no_place_left() -> None:
    outcome = solve(*pods(10, rather_apart=[(50, near(ZONE))]))
    assert len(outcome.homes) == 10


def test_pods_apart_from_another_get_a_host_of_their_own() -> None:
    outcome = solve(
        pod("db", cpu="100m", labels=DB), pod("web", cpu="100m", apart=[near(HOST, DB)])
    )
    assert outcome.is_placed("db", "web")
    assert outcome.where("db") != outcome.where("web")


def test_a_pod_apart_from_what_every_zone_has_stays_pending() -> None:
    outcome = solve(*in_every_zone(labels=DB), pod("a", apart=[near(ZONE, DB)]))
    assert list(outcome.pending) == ["a"]
    assert "anti-affinity" in outcome.pending["a"]


def test_a_pod_apart_from_one_that_is_larger_and_placed_first_gets_another_zone() -> None:
    outcome = solve(pod("db", cpu="3", labels=DB), pod("web", cpu="100m", apart=[near(ZONE, DB)]))
    assert outcome.is_placed("db", "web")
    assert apart(outcome, "db", "web")


def test_a_pod_apart_over_architectures_gets_the_other_one() -> None:
    target = pod("db", cpu="2", labels=DB, selector={ARCH: "arm64"})
    outcome = solve(target, pod("web", cpu="100m", apart=[near(ARCH, DB)]))
    assert outcome.values(ARCH, "web") == {"amd64"}


def test_others_that_would_rather_be_apart_do_not_keep_a_pod_away() -> None:
    others = in_every_zone(cpu="2", rather_apart=[(10, near(ZONE, SECRET))])
    outcome = solve(*others, pod("a", cpu="1", labels=SECRET))
    assert len(outcome.homes) == 4


def test_others_that_must_be_apart_keep_a_pod_away() -> None:
    others = in_every_zone(cpu="2", apart=[near(ZONE, SECRET)])
    outcome = solve(*others, pod("a", cpu="1", labels=SECRET))
    assert len(outcome.homes) == 3
    assert list(outcome.pending) == ["a"]


def test_one_whose_zone_was_not_settled_keeps_others_from_all_it_may_get() -> None:
    """Whatever zones the launch may choose from, they are never those of the other's launch."""
    outcome = solve(
        pod("any", cpu="2", apart=[near(ZONE, SECRET)]),
        pod("a", cpu="1", labels=SECRET, selector={ZONE: B}),
    )
    assert outcome.is_placed("any", "a")
    assert apart(outcome, "any", "a")


def test_required_anti_affinity_of_running_pods_repels_a_pod() -> None:
    nodes, bound = standing_in_every_zone(apart=[near(ZONE, SECRET)])
    outcome = solve(pod("a", labels=SECRET), nodes=nodes, bound=bound)
    assert outcome.new == ()
    assert "anti-affinity" in outcome.pending["a"]


def test_preferred_anti_affinity_of_running_pods_does_not_repel_a_pod() -> None:
    nodes, bound = standing_in_every_zone(rather_apart=[(10, near(ZONE, SECRET))])
    assert solve(pod("a", labels=SECRET), nodes=nodes, bound=bound).is_placed("a")


def test_pods_apart_from_each_other_get_a_zone_each() -> None:
    outcome = solve(*pods(4, apart=[near(ZONE)]))
    assert outcome.counts(ZONE) == dict.fromkeys(ZONES, 1)
    assert len(outcome.pending) == 1
