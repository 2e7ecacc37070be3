"""Alternatives and preferences: the first that can be had is taken, and none keeps a pod pending.

The list asks the same of one provisioner and of the choice among several: `owners` says which.
"""

import pytest

from shared.model import labels as keys
from shared.model.provisioner import Provisioner
from tests.karpenter_cases.scheduling.market import ZONES, A, B, C
from tests.karpenter_cases.scheduling.outcome import alone
from tests.karpenter_cases.scheduling.writing import TEAM, provisioner, taint, tolerates

ZONE, TYPE = keys.ZONE, keys.INSTANCE_TYPE
ONE = (provisioner("default", (ZONE, "In", A, B)),)
MANY = (provisioner("first", (ZONE, "In", A)), provisioner("second", (ZONE, "In", B)))
OWNERS = pytest.mark.parametrize(
    "owners", [pytest.param(ONE, id="one"), pytest.param(MANY, id="many")]
)
Owners = tuple[Provisioner, ...]


@OWNERS
def test_the_last_alternative_is_never_dropped(owners: Owners) -> None:
    required = [[(ZONE, "In", "invalid")]]
    outcome = alone({"required": required}, provisioners=owners)
    assert outcome.new == ()
    assert len(outcome.pending) == 1


@OWNERS
def test_alternatives_that_cannot_be_met_are_skipped(owners: Owners) -> None:
    required = [[(ZONE, "In", "invalid")], [(TYPE, "In", "invalid")], [(ZONE, "In", B, C)]]
    assert alone({"required": required}, provisioners=owners).values(ZONE) == {B}


@OWNERS
def test_preferences_that_cannot_be_met_are_all_dropped(owners: Owners) -> None:
    preferred = [(weight, [(ZONE, "In", f"invalid-{weight}")]) for weight in (1, 2, 3)]
    assert alone({"preferred": preferred}, provisioners=owners).is_placed("a")


@OWNERS
def test_a_lighter_preference_is_met_when_a_heavier_one_cannot_be(owners: Owners) -> None:
    preferred = [(100, [(ZONE, "In", C)]), (50, [(ZONE, "In", B)]), (1, [(ZONE, "In", A)])]
    assert alone({"preferred": preferred}, provisioners=owners).values(ZONE) == {B}


def test_a_preference_against_the_requirement_is_dropped() -> None:
    words = {"required": [[(ZONE, "In", C)]], "preferred": [(1, [(ZONE, "NotIn", C)])]}
    assert alone(words).values(ZONE) == {C}


def test_of_preferences_against_each_other_the_heavier_is_met() -> None:
    preferred = [(1, [(ZONE, "In", *ZONES), (ZONE, "NotIn", B)]), (2, [(ZONE, "NotIn", A, C)])]
    assert alone({"preferred": preferred}).values(ZONE) == {B}


def test_every_kind_of_node_preference_is_dropped_in_the_end() -> None:
    words = {
        "required": [[(ZONE, "In", "invalid")], [(ZONE, "In", B)]],
        "preferred": [
            (10, [(ZONE, "In", "invalid")]),
            (5, [(TYPE, "In", "invalid")]),
            (1, [(TEAM, "Exists")]),
        ],
    }
    assert alone(words).values(ZONE) == {B}


def test_a_soft_taint_is_tolerated_only_when_no_preference_is_left_to_drop() -> None:
    soft = provisioner("soft", (ZONE, "In", A), taints=[taint("old", "PreferNoSchedule")], weight=9)
    plain = provisioner("plain", (ZONE, "In", B))
    preferred = [(1, [(ZONE, "In", A)])]
    assert alone({"preferred": preferred}, provisioners=(soft, plain)).by() == "plain"
    assert alone({"preferred": preferred}, provisioners=(soft,)).by() == "soft"


def test_a_soft_taint_is_avoided_when_another_provisioner_fits() -> None:
    soft = provisioner("soft", taints=[taint("old", "PreferNoSchedule")], weight=9)
    owners = (soft, provisioner("plain"))
    assert alone({}, provisioners=owners).by() == "plain"
    tolerant = {"tolerations": [tolerates("old")]}
    assert alone(tolerant, provisioners=owners).by() == "soft"
