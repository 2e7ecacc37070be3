"""Zones, types and capacity types: what every machine answers, and pods choose by."""

from typing import Any

import pytest

from shared.model import labels as keys
from tests.karpenter_cases.scheduling.machines import node
from tests.karpenter_cases.scheduling.market import ZONES, A, B, C
from tests.karpenter_cases.scheduling.outcome import alone, solve
from tests.karpenter_cases.scheduling.writing import pod, provisioner

ZONE = keys.ZONE
PLACES = ("new", "standing")
ANYWHERE = (ZONE, "In", *ZONES, "unknown")


def zones(place: str = "new", **words: Any) -> set[str | None]:
    """Return the zones a pod may land in: none when it stays pending.

    It may be made a node, or there is one in each zone and nothing can be made.
    """
    if place == "standing":
        there = tuple(node(f"n-{zone}", zone) for zone in ZONES)
        outcome = solve(pod(**words), provisioners=(), nodes=there)
    else:
        outcome = alone(words)
    return outcome.values(ZONE) if outcome.is_placed("a") else set()


def test_a_node_is_in_the_zone_of_its_provisioner() -> None:
    assert alone({}, provisioners=(provisioner("default", (ZONE, "In", B)),)).values(ZONE) == {B}


def test_a_selector_chooses_within_what_the_provisioner_allows() -> None:
    owner = provisioner("default", (ZONE, "In", A, B))
    assert alone({"selector": {ZONE: B}}, provisioners=(owner,)).values(ZONE) == {B}


def test_an_unknown_zone_keeps_the_pod_pending() -> None:
    outcome = alone({"selector": {ZONE: "unknown"}})
    assert "unknown" in outcome.pending["a"]


def test_a_zone_the_provisioner_leaves_out_keeps_the_pod_pending() -> None:
    owner = provisioner("default", (ZONE, "In", A))
    outcome = alone({"selector": {ZONE: B}}, provisioners=(owner,))
    assert f"{ZONE} in [{B}], offered {A}" in outcome.pending["a"]


@pytest.mark.parametrize("place", PLACES)
def test_no_new_node_has_a_name_that_is_asked_for(place: str) -> None:
    there = (node(),) if place == "standing" else ()
    outcome = solve(pod(selector={keys.HOSTNAME: "red"}), nodes=there)
    assert outcome.homes == {}
    assert "red" in outcome.pending["a"]


def test_values_asked_for_are_met() -> None:
    assert zones(required=[[(ZONE, "In", C)]]) == {C}


def test_unavailable_required_values_keep_the_pod_pending() -> None:
    assert zones(required=[[(ZONE, "In", "unknown")]]) == set()


def test_values_not_wanted_are_avoided() -> None:
    assert zones(required=[[(ZONE, "NotIn", A, B, "unknown")]]) == {C}


def test_if_no_value_is_wanted_the_pod_stays_pending() -> None:
    assert zones(required=[[(ZONE, "NotIn", *ZONES, "unknown")]]) == set()


def test_a_preference_within_what_is_required_is_met() -> None:
    preferred = [(1, [(ZONE, "In", B, "unknown")])]
    assert zones(required=[[ANYWHERE]], preferred=preferred) == {B}


def test_a_preference_to_avoid_within_what_is_required_is_met() -> None:
    preferred = [(1, [(ZONE, "NotIn", A, C)])]
    assert zones(required=[[ANYWHERE]], preferred=preferred) == {B}


def test_selector_preference_and_requirement_are_met_together() -> None:
    everywhere = (ZONE, "In", *ZONES)
    assert zones(selector={ZONE: C}, required=[[everywhere]], preferred=[(1, [everywhere])]) == {C}


def test_wishes_about_several_labels_are_met_together() -> None:
    outcome = alone(
        {
            "selector": {ZONE: C, keys.INSTANCE_TYPE: "c6.arm"},
            "required": [
                [(ZONE, "In", A, C), (keys.INSTANCE_TYPE, "In", "m5.small", "c6.arm")],
            ],
            "preferred": [
                (1, [(ZONE, "NotIn", "unknown"), (keys.INSTANCE_TYPE, "NotIn", "unknown")]),
            ],
        }
    )
    assert outcome.values(ZONE) == {C}
    assert outcome.values(keys.INSTANCE_TYPE) == {"c6.arm"}


@pytest.mark.parametrize("place", PLACES)
def test_a_preference_that_cannot_be_met_is_dropped(place: str) -> None:
    preferred = [(1, [(ZONE, "In", "unknown")])]
    assert zones(place, required=[[(ZONE, "In", B, C)]], preferred=preferred)


@pytest.mark.parametrize("place", PLACES)
def test_a_preference_to_avoid_everything_is_dropped(place: str) -> None:
    preferred = [(1, [(ZONE, "NotIn", *ZONES)])]
    assert zones(place, required=[[(ZONE, "In", B, C)]], preferred=preferred)


@pytest.mark.parametrize("side", ["provisioner", "pod"])
@pytest.mark.parametrize(
    ("operator", "cores"), [("Gt", {"16"}), ("Lt", {"2", "4"})], ids=["gt", "lt"]
)
def test_numbers_are_compared(side: str, operator: str, cores: set[str]) -> None:
    bound = (keys.INSTANCE_CPU, operator, "8")
    owner = provisioner("default", bound) if side == "provisioner" else provisioner()
    words: dict[str, Any] = {"required": [[bound]]} if side == "pod" else {}
    outcome = alone(words, provisioners=(owner,))
    assert outcome.values(keys.INSTANCE_CPU) <= cores
    assert outcome.type_of() == {"Gt": "m5.large", "Lt": "m5.tiny"}[operator]
