"""Even placement over zones, as kube-scheduler would still allow it at the end."""

from collections.abc import Iterable
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from tests.karpenter_cases.scheduling.machines import node
from tests.karpenter_cases.scheduling.market import ZONES, A, B, C
from tests.karpenter_cases.scheduling.outcome import alone, settled, solve
from tests.karpenter_cases.scheduling.writing import Raw, pod, pods, provisioner, spread

ZONE = keys.ZONE
EVEN = [spread()]
FULL = {"cpu": "10m", "memory": "1Mi", "pods": "0"}


def full(zone: str, count: int = 1, **words: Any) -> tuple[Node, tuple[Pod, ...]]:
    """Return a full node and the counted pods that are bound to it."""
    there = node(f"n-{zone}", zone, allocatable=FULL)
    return there, tuple(pod(f"old-{zone}-{n}", node=there.name) for n in range(count))


def standing(*parts: tuple[Node, Iterable[Pod]]) -> dict[str, Any]:
    return {
        "nodes": tuple(other_node for other_node, _ in parts),
        "bound": tuple(other_pod for _, many in parts for other_pod in many),
    }


def within(*zones: str) -> Raw:
    return {"provisioners": (provisioner("default", (ZONE, "In", *zones)),)}


def test_pods_are_spread_over_all_zones() -> None:
    assert solve(*pods(4, spreads=EVEN)).shares(ZONE) == [1, 1, 2]


def test_pods_are_spread_by_the_labels_of_a_selector() -> None:
    """Two applications, each even for itself: what one has somewhere is nothing to the other."""
    red, blue = {"app": "red"}, {"app": "blue"}
    members = (
        *pods(4, "red", labels=red, spreads=[spread(match=red)]),
        *pods(7, "blue", labels=blue, spreads=[spread(match=blue)]),
    )
    outcome = solve(*members)
    assert outcome.shares(ZONE, "red") == [1, 1, 2]
    assert outcome.shares(ZONE, "blue") == [2, 2, 3]


def test_a_selector_of_expressions_spreads_too() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}
    rule = spread(match=None, labelSelector=selector)
    assert solve(*pods(4, spreads=[rule])).shares(ZONE) == [1, 1, 2]


def test_pods_are_spread_over_the_zones_of_their_provisioner() -> None:
    assert solve(*pods(4, spreads=EVEN), **within(A, B)).counts(ZONE) == {A: 2, B: 2}


def test_a_provisioner_of_one_zone_is_all_there_is() -> None:
    assert solve(*pods(3, spreads=EVEN), **within(B)).counts(ZONE) == {B: 3}


def test_a_zone_outside_the_provisioner_counts_when_it_has_a_node() -> None:
    outcome = solve(*pods(6, spreads=EVEN), **within(A, B), **standing(full(C)))
    assert outcome.counts(ZONE) == {A: 2, B: 2}
    assert len(outcome.pending) == 2


def test_only_pods_that_the_rule_means_are_counted() -> None:
    nodes = (node("n-a", A), node("n-b", B), node("n-none", labels={ZONE: ""}))
    bare = node("bare", owner="")
    del bare.labels[ZONE]  # type: ignore[attr-defined] # a plain dict, made by the decoder
    counted = (pod("a1", node="n-a"), pod("b1", node="n-b"), pod("b2", node="n-b"))
    other = (
        pod("unlabelled", labels={}, node="n-a"),
        pod("elsewhere", node="bare"),
        pod("namespace", namespace="other", node="n-a"),
        pod("leaving", node="n-a", deleting=True),
    )
    outcome = solve(*pods(2, spreads=EVEN), nodes=(*nodes[:2], bare), bound=(*counted, *other))
    new = outcome.counts(ZONE)
    assert sorted(new.get(zone, 0) + {A: 1, B: 2, C: 0}[zone] for zone in ZONES) == [1, 2, 2]


def test_higher_skew_allows_pods_in_the_only_domain_with_capacity() -> None:
    outcome = solve(*pods(10, spreads=[spread(skew=5)]), **within(C), **standing(full(A), full(B)))
    assert outcome.counts(ZONE) == {C: 6}
    assert len(outcome.pending) == 4


def test_where_the_rule_is_broken_already_pods_only_mend_it() -> None:
    outcome = solve(*pods(4, spreads=EVEN), **standing(full(A, 9)))
    assert outcome.counts(ZONE) == {B: 2, C: 2}


def test_pods_that_would_break_the_rule_stay_pending() -> None:
    outcome = solve(*pods(10, spreads=EVEN), **within(B, C), **standing(full(A)))
    assert outcome.counts(ZONE) == {B: 2, C: 2}
    assert len(outcome.pending) == 6
    assert all("spread" in value for value in outcome.pending.values())


def test_a_zone_with_a_node_but_no_pod_is_the_emptiest() -> None:
    outcome = solve(*pods(5, spreads=EVEN), **within(B), **standing(full(A), full(C, 0)))
    assert outcome.counts(ZONE) == {B: 1}
    assert len(outcome.pending) == 4


def test_pods_the_rule_does_not_count_are_not_spread() -> None:
    """It counts others, so wherever these go it stays as even as it is."""
    outcome = solve(*pods(5, cpu="100m", labels={"app": "other"}, spreads=EVEN))
    assert len(outcome.new) == 1
    assert len(outcome.homes) == 5


def test_a_key_no_node_has_keeps_the_pod_pending() -> None:
    outcome = alone({"spreads": [spread("example.com/unknown")]})
    assert outcome.new == ()
    assert "example.com/unknown" in outcome.pending["a"]


def test_fewer_domains_than_asked_for_count_as_empty_ones() -> None:
    rule = spread(minDomains=3)
    outcome = solve(*pods(3, spreads=[rule]), **within(A, B))
    assert outcome.counts(ZONE) == {A: 1, B: 1}
    assert len(outcome.pending) == 1


@pytest.mark.parametrize("domains", [3, 2])
def test_as_many_domains_as_asked_for_change_nothing(domains: int) -> None:
    rule = spread(minDomains=domains)
    outcome = solve(*pods(11, spreads=[rule]))
    assert outcome.shares(ZONE) == [3, 4, 4]


def test_a_selector_of_one_zone_limits_where_pods_are_spread() -> None:
    in_a = pods(5, "in-a", selector={ZONE: A}, spreads=EVEN)
    in_b = pods(5, "in-b", selector={ZONE: B}, spreads=EVEN)
    assert solve(*in_a, *in_b).counts(ZONE) == {A: 5, B: 5}


def test_affinity_to_zones_limits_where_pods_are_spread() -> None:
    both = pods(6, "both", required=[[(ZONE, "In", A, B)]], spreads=EVEN)
    only = pod("only", required=[[(ZONE, "NotIn", B, C)]], spreads=EVEN)
    first = solve(*both, only)
    assert first.shares(ZONE) == [3, 4]
    assert first.counts(ZONE, "only") == {A: 1}
    second = solve(*pods(5, "any", spreads=EVEN), **settled(first))
    assert second.shares(ZONE, standing=True) == [4, 4, 4]


def test_a_requirement_of_two_zones_spreads_over_these() -> None:
    outcome = solve(*pods(10, required=[[(ZONE, "In", A, B)]], spreads=EVEN))
    assert outcome.counts(ZONE) == {A: 5, B: 5}


def test_later_pods_of_other_zones_start_from_the_current_counts() -> None:
    first = solve(*pods(6, "first", required=[[(ZONE, "In", A, B)]], spreads=EVEN))
    assert first.counts(ZONE) == {A: 3, B: 3}
    later = pods(5, "later", required=[[(ZONE, "In", B, C)]], spreads=EVEN)
    second = solve(*later, **settled(first))
    assert second.counts(ZONE, standing=True) == {A: 3, B: 4, C: 4}


def test_a_preferred_zone_does_not_limit_the_spread() -> None:
    outcome = solve(*pods(6, preferred=[(1, [(ZONE, "In", A)])], spreads=EVEN))
    assert outcome.shares(ZONE) == [2, 2, 2]


def test_zones_of_several_provisioners_are_one_set() -> None:
    owners = (
        provisioner("one", (ZONE, "In", A), weight=9),
        provisioner("two", (ZONE, "In", B, C)),
    )
    outcome = solve(*pods(6, spreads=EVEN), provisioners=owners)
    assert outcome.counts(ZONE) == {A: 2, B: 2, C: 2}
    assert {planned_node.provisioner for planned_node in outcome.new} == {"one", "two"}
