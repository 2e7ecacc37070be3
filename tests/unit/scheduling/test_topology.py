"""Topology rules as slots and shares."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.pods import Pod
from shared.scheduling.classes import PodClass, group
from shared.scheduling.topology import (
    domain_spread,
    domain_term,
    host_rules,
    slots_left,
    slots_of_empty_node,
    slots_taken,
    unsupported_rule,
    water_fill,
)
from tests.builders import affinity, pod, pods, selector, spread


def classes(*members: Pod) -> tuple[PodClass, ...]:
    return group(members)


def room_for(count: int, *members: Pod, standing: tuple[Pod, ...] = (), soft: bool = True) -> bool:
    """Whether so many pods of the first class still get slots on a node with these standing."""
    found = classes(*members)
    rules = host_rules(found, standing)
    return slots_taken(rules, found[0], soft=soft).times(count).fits(slots_left(rules, standing))


def test_a_hostname_spread_allows_its_skew_on_each_node() -> None:
    one = pod(spreads=(spread(keys.HOSTNAME, 2),))
    assert room_for(2, one)
    assert not room_for(3, one)
    standing = (pod("x", node_name="n"),)
    assert room_for(1, one, standing=standing)
    assert not room_for(2, one, standing=standing)
    elsewhere = (pod("x", namespace="other", node_name="n"),)
    assert room_for(2, one, standing=elsewhere)


def test_a_spread_that_does_not_select_its_own_pods_takes_nothing() -> None:
    one = pod(labels={"app": "db"}, spreads=(spread(keys.HOSTNAME),))
    assert room_for(100, one)


def test_a_soft_spread_may_be_dropped() -> None:
    one = pod(spreads=(spread(keys.HOSTNAME, hard=False),))
    assert not room_for(2, one)
    assert room_for(2, one, soft=False)
    (rule,) = host_rules(classes(one))
    assert rule.soft


def test_a_pod_with_anti_affinity_wants_a_host_without_those_it_avoids() -> None:
    lonely = pod("l", labels={"app": "lonely"}, anti_affinity=(affinity(),))
    web = pod("w")
    both = classes(lonely, web)
    rules = host_rules(both)
    assert slots_taken(rules, both[0], soft=True).fits(slots_of_empty_node(rules))
    assert not room_for(1, lonely, standing=(pod("x", node_name="n"),))
    assert room_for(1, lonely, standing=(pod("x", labels={"app": "db"}, node_name="n"),))
    together = slots_taken(rules, both[0], soft=True) + slots_taken(rules, both[1], soft=True)
    assert not together.fits(slots_of_empty_node(rules))
    assert slots_taken(rules, both[1], soft=True).times(100).fits(slots_of_empty_node(rules))


def test_anti_affinity_counts_the_namespaces_it_names() -> None:
    lonely = pod("l", anti_affinity=(affinity(namespaces=("shop",)),))
    assert room_for(1, lonely, standing=(pod("x", node_name="n"),))
    assert not room_for(1, lonely, standing=(pod("x", namespace="shop", node_name="n"),))


def test_a_standing_pod_keeps_away_those_its_anti_affinity_counts() -> None:
    guard = pod("g", labels={"app": "guard"}, node_name="n", anti_affinity=(affinity(),))
    assert not room_for(1, pod("w"), standing=(guard,))
    soft = pod("g", node_name="n", anti_affinity=(affinity(weight=10), affinity(keys.ZONE)))
    assert room_for(1, pod("w"), standing=(soft,))


def test_rules_of_a_standing_pod_split_classes_by_the_labels_it_selects() -> None:
    guard = pod("g", node_name="n", anti_affinity=(affinity(),))
    members = (pod("a", labels={"app": "web"}), pod("b", labels={"app": "db"}))
    assert len(group(members)) == 1
    assert len(group(members, (guard,))) == 2


def test_two_pods_of_one_host_port_never_share_a_node() -> None:
    web = pod(host_ports=(("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 443)))
    assert room_for(1, web)
    assert not room_for(2, web)
    other = pod("x", node_name="n", labels={}, host_ports=(("10.0.0.1", "TCP", 443),))
    assert not room_for(1, web, standing=(other,))
    quic = pod("x", node_name="n", labels={}, host_ports=(("0.0.0.0", "UDP", 443),))
    assert room_for(1, web, standing=(quic,))


def test_the_same_rule_of_many_classes_is_one_rule() -> None:
    rule = (spread(keys.HOSTNAME), spread(keys.HOSTNAME, selector=None))
    again = {"anti_affinity": (affinity(), affinity(selector=None), affinity(weight=5))}
    port = (("0.0.0.0", "TCP", 80),)
    found = host_rules(
        classes(
            pod("a", cpu=100, spreads=rule, host_ports=port, **again),
            pod("b", cpu=200, spreads=rule, host_ports=port, **again),
        )
    )
    assert [one.name for one in found] == ["slot/0", "slot/1", "slot/2"]


def test_the_hard_spread_with_the_smallest_skew_leads() -> None:
    soft, wide, narrow = spread(hard=False), spread(max_skew=5), spread(max_skew=2)
    (one,) = classes(pod(spreads=(soft, wide, narrow, spread(keys.HOSTNAME))))
    assert domain_spread(one) == narrow
    (none,) = classes(pod(spreads=(spread(keys.HOSTNAME), spread(selector=None))))
    assert domain_spread(none) is None


def test_the_first_required_term_over_domains_is_taken() -> None:
    term = affinity(keys.ZONE)
    passed_over = (affinity(keys.ZONE, weight=3), affinity(), affinity(keys.ZONE, selector=None))
    assert domain_term((*passed_over, term)) == term
    assert domain_term(passed_over) is None


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"affinity": (affinity(),)}, "required pod affinity over kubernetes.io/hostname"),
        ({"affinity": (affinity("rack"),)}, "required pod affinity over rack"),
        ({"anti_affinity": (affinity("rack"),)}, "required pod anti-affinity over rack"),
        ({"spreads": (spread("rack"),)}, "topology spread over rack"),
    ],
)
def test_rules_over_other_keys_cannot_be_planned_for(rules: dict[str, Any], text: str) -> None:
    (one,) = classes(pod(**rules))
    assert unsupported_rule(one) == f"{text} is not planned for"


def test_preferences_and_rules_over_known_keys_can_be_planned_for() -> None:
    (one,) = classes(
        pod(
            affinity=(affinity("rack", weight=1), affinity(keys.ZONE)),
            anti_affinity=(affinity("rack", weight=1), affinity(), affinity(keys.ZONE)),
            spreads=(spread("rack", hard=False), spread(), spread(keys.HOSTNAME)),
        )
    )
    assert unsupported_rule(one) == ""


def test_labels_no_rule_selects_do_not_split_classes() -> None:
    named = [pod(name, labels={"pod": name}) for name in "abc"]
    assert len(classes(*named)) == 1
    assert len(classes(*named, pod("z", namespace="other", labels={"pod": "z"}))) == 1
    ruled = [
        pod(name, labels={"pod": name}, spreads=(spread(selector=selector(pod="a")),))
        for name in "abc"
    ]
    assert len(classes(*ruled)) == 3


def test_namespaces_split_classes_only_where_a_selector_counts() -> None:
    rule = (spread(selector=selector()),)
    apart = (pod("a", spreads=rule), pod("b", namespace="other", spreads=rule))
    assert len(classes(*apart)) == 2


def test_classes_come_by_priority_then_by_name() -> None:
    members = (*pods(2, "b"), pod("a", priority=10), pod("c", priority=-5))
    found = classes(*members)
    assert [one.pods[0].name for one in found] == ["a", "b000", "c"]
    assert [len(one.pods) for one in found] == [1, 2, 1]


def test_nothing_is_given_where_there_is_no_domain() -> None:
    assert water_fill({}, 5) == {}
    assert water_fill({"a": 2, "b": 2}, 0) == {"a": 0, "b": 0}
