"""Labels of the user's own, which a provisioner gives its nodes and pods ask for.

A question that the list asks twice is asked once of nodes that would be made and once of a node
that stands there already, where the provisioner cannot help.
"""

from typing import Any

import pytest

from shared.model import labels as keys
from tests.karpenter_cases.scheduling.machines import node
from tests.karpenter_cases.scheduling.outcome import Outcome, alone, solve
from tests.karpenter_cases.scheduling.writing import TEAM, Expression, pod, provisioner

RED: dict[str, Any] = {"labels": {TEAM: "red"}}
PLACES = ("new", "standing")


def asked(place: str, label: str, *expressions: Expression) -> Outcome:
    """Decide about a pod whose node would have that label, or none when it is empty."""
    waiting = pod(required=[list(expressions)] if expressions else [])
    labels = {TEAM: label} if label else {}
    if place == "standing":
        return solve(waiting, provisioners=(), nodes=(node(labels=labels),))
    return solve(waiting, provisioners=(provisioner(labels=labels),))


def test_pods_that_ask_for_nothing_get_labelled_nodes_too() -> None:
    assert alone({}, provisioners=(provisioner(**RED),)).values(TEAM) == {"red"}


def test_a_selector_for_another_value_keeps_the_pod_pending() -> None:
    outcome = alone({"selector": {TEAM: "blue"}}, provisioners=(provisioner(**RED),))
    assert not outcome.is_placed("a")
    assert f"{TEAM} in [blue], offered red" in outcome.pending["a"]


def test_a_selector_for_an_unknown_label_keeps_the_pod_pending() -> None:
    outcome = alone({"selector": {TEAM: "red"}})
    assert f"{TEAM} in [red], offered no such label" in outcome.pending["a"]


def test_one_of_several_values_asked_for_is_enough() -> None:
    assert asked("new", "red", (TEAM, "In", "red", "blue")).values(TEAM) == {"red"}


def test_none_of_several_values_keeps_the_pod_pending() -> None:
    assert not asked("new", "red", (TEAM, "In", "blue", "green")).is_placed("a")


def test_a_label_that_must_exist_does() -> None:
    assert asked("new", "red", (TEAM, "Exists")).values(TEAM) == {"red"}


def test_a_required_label_that_no_provisioner_sets_keeps_the_pod_pending() -> None:
    outcome = alone({"required": [[(TEAM, "Exists")]]})
    assert TEAM in outcome.pending["a"]


def test_a_label_that_must_not_exist_but_is_given_keeps_the_pod_pending() -> None:
    assert TEAM in asked("new", "red", (TEAM, "DoesNotExist")).pending["a"]


def test_a_forbidden_label_that_no_provisioner_sets_is_no_obstacle() -> None:
    outcome = alone({"required": [[(TEAM, "DoesNotExist")]]})
    assert outcome.values(TEAM) == {None}


def test_a_preference_for_the_label_that_is_given_is_met() -> None:
    preferred = [(1, [(TEAM, "In", "red", "blue")])]
    owners = (provisioner("also", labels={TEAM: "green"}), provisioner("fits", **RED))
    assert alone({"preferred": preferred}, provisioners=owners).values(TEAM) == {"red"}


@pytest.mark.parametrize("place", PLACES)
def test_a_value_of_a_label_that_is_missing_keeps_the_pod_pending(place: str) -> None:
    assert not asked(place, "", (TEAM, "In", "red")).is_placed("a")


@pytest.mark.parametrize("place", PLACES)
def test_all_but_a_value_allows_that_the_label_is_missing(place: str) -> None:
    assert asked(place, "", (TEAM, "NotIn", "red")).values(TEAM) == {None}


@pytest.mark.parametrize("place", PLACES)
def test_that_a_label_exists_is_not_so_when_it_is_missing(place: str) -> None:
    assert not asked(place, "", (TEAM, "Exists")).is_placed("a")


@pytest.mark.parametrize("place", PLACES)
def test_that_a_label_does_not_exist_is_so_when_it_is_missing(place: str) -> None:
    assert asked(place, "", (TEAM, "DoesNotExist")).values(TEAM) == {None}


@pytest.mark.parametrize("place", PLACES)
def test_the_value_asked_for_is_accepted(place: str) -> None:
    assert asked(place, "red", (TEAM, "In", "red")).values(TEAM) == {"red"}


@pytest.mark.parametrize("place", PLACES)
def test_the_value_forbidden_is_not_accepted(place: str) -> None:
    assert not asked(place, "red", (TEAM, "NotIn", "red")).is_placed("a")


@pytest.mark.parametrize("place", PLACES)
def test_another_value_than_asked_for_is_not_accepted(place: str) -> None:
    assert not asked(place, "red", (TEAM, "In", "blue")).is_placed("a")


@pytest.mark.parametrize("place", PLACES)
def test_another_value_than_forbidden_is_accepted(place: str) -> None:
    assert asked(place, "red", (TEAM, "NotIn", "blue")).values(TEAM) == {"red"}


def two(place: str, *expressions: Expression) -> Outcome:
    """Decide about pods a, b, ... where nodes are red or blue."""
    members = [
        pod(name, required=[[expression]])
        for name, expression in zip("abcd", expressions, strict=False)
    ]
    if place == "standing":
        there = (node("n-red", labels={TEAM: "red"}), node("n-blue", labels={TEAM: "blue"}))
        return solve(*members, provisioners=(), nodes=there)
    return solve(*members, provisioners=(provisioner("default", (TEAM, "In", "red", "blue")),))


@pytest.mark.parametrize("place", PLACES)
def test_pods_whose_wishes_meet_share_a_node(place: str) -> None:
    outcome = two(place, (TEAM, "In", "red"), (TEAM, "NotIn", "blue"))
    assert outcome.where("a") == outcome.where("b") != ""
    assert outcome.values(TEAM, "b") == {"red"}


@pytest.mark.parametrize("place", PLACES)
def test_pods_whose_wishes_exclude_each_other_do_not_share_a_node(place: str) -> None:
    outcome = two(place, (TEAM, "In", "red"), (TEAM, "In", "blue"))
    assert outcome.where("a") != outcome.where("b")
    assert (outcome.values(TEAM, "a"), outcome.values(TEAM, "b")) == ({"red"}, {"blue"})


@pytest.mark.parametrize("place", PLACES)
def test_that_a_label_exists_does_not_widen_which_value_it_has(place: str) -> None:
    outcome = asked(place, "red", (TEAM, "In", "blue"), (TEAM, "Exists"))
    assert not outcome.is_placed("a")
    assert asked(place, "red", (TEAM, "In", "red"), (TEAM, "Exists")).is_placed("a")


RESTRICTED = (keys.EMPTINESS_TIMESTAMP, keys.HOSTNAME)
DOMAINS = ("kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws")
EXCEPTED = ("kops.k8s.io", "node.kubernetes.io", "node-restriction.kubernetes.io")


@pytest.mark.parametrize("way", ["selector", "affinity"])
def test_labels_that_only_the_system_sets_are_never_given_to_a_new_node(way: str) -> None:
    for key in RESTRICTED:
        assert not requested(way, key, "x").is_placed("a")


@pytest.mark.parametrize("way", ["selector", "affinity"])
def test_labels_of_domains_of_others_are_never_given_to_a_new_node(way: str) -> None:
    for domain in DOMAINS:
        assert not requested(way, f"{domain}/custom", "x").is_placed("a")


@pytest.mark.parametrize("way", ["selector", "affinity"])
def test_labels_of_excepted_domains_are_given_when_the_provisioner_has_them(way: str) -> None:
    given = {f"{domain}/custom": "x" for domain in EXCEPTED}
    for key in given:
        outcome = requested(way, key, "x", labels=given)
        assert outcome.values(key) == {"x"}


@pytest.mark.parametrize("way", ["selector", "affinity"])
def test_well_known_labels_choose_among_what_can_be_bought(way: str) -> None:
    for key, value in (
        (keys.ZONE, "zone-b"),
        (keys.INSTANCE_TYPE, "m5.medium"),
        (keys.ARCH, "arm64"),
        (keys.OS, "linux"),
        (keys.CAPACITY_TYPE, "spot"),
    ):
        assert requested(way, key, value).values(key) == {value}


def requested(way: str, key: str, value: str, **spec: Any) -> Outcome:
    words: dict[str, Any] = {"selector": {key: value}}
    if way == "affinity":
        words = {"required": [[(key, "In", value)]]}
    return alone(words, provisioners=(provisioner(**spec),))
