"""Every operator of a provisioner against every operator of a pod, on a label of the user's own.

What is asked is whether a node that both allow can be made, and which label it then has.
"""

import pytest

from tests.karpenter_cases.scheduling.outcome import Outcome, alone
from tests.karpenter_cases.scheduling.writing import TEAM, provisioner

Side = tuple[str, ...]
NOTHING: Side = ()


def meet(ours: Side, theirs: Side) -> Outcome:
    """Decide about a pod that asks for `theirs` where the provisioner says `ours`."""
    owner = provisioner("default", *([(TEAM, *ours)] if ours else []))
    words = {"required": [[(TEAM, *theirs)]]} if theirs else {}
    return alone(words, provisioners=(owner,))


@pytest.mark.parametrize(
    ("ours", "theirs", "label"),
    [
        pytest.param(("In", "red"), ("In", "red", "blue"), "red", id="in-in-sharing"),
        pytest.param(("In", "red", "blue"), ("NotIn", "red"), "blue", id="in-notin"),
        pytest.param(("In", "red"), ("Exists",), "red", id="in-exists"),
        pytest.param(("In", "red"), NOTHING, "red", id="in-empty"),
        pytest.param(("NotIn", "red"), ("In", "red", "blue"), "blue", id="notin-in-sharing"),
        pytest.param(("Exists",), ("In", "red"), "red", id="exists-in"),
        pytest.param(("DoesNotExist",), ("NotIn", "red"), None, id="absent-notin"),
        pytest.param(("DoesNotExist",), ("DoesNotExist",), None, id="absent-absent"),
        pytest.param(("DoesNotExist",), NOTHING, None, id="absent-empty"),
        pytest.param(NOTHING, ("NotIn", "red"), None, id="empty-notin"),
        pytest.param(NOTHING, ("DoesNotExist",), None, id="empty-absent"),
    ],
)
def test_what_both_allow_is_made(ours: Side, theirs: Side, label: str | None) -> None:
    outcome = meet(ours, theirs)
    assert outcome.pending == {}
    assert outcome.values(TEAM) == {label}


@pytest.mark.parametrize(
    ("ours", "theirs", "never"),
    [
        pytest.param(("NotIn", "red"), ("NotIn", "blue"), {"red", "blue"}, id="notin-notin"),
        pytest.param(("NotIn", "red"), ("Exists",), {"red", None}, id="notin-exists"),
        pytest.param(("NotIn", "red"), NOTHING, {"red"}, id="notin-empty"),
        pytest.param(("Exists",), ("NotIn", "red"), {"red"}, id="exists-notin"),
        pytest.param(("Exists",), ("Exists",), {None}, id="exists-exists"),
    ],
)
def test_of_many_values_one_is_made_that_neither_forbids(
    ours: Side, theirs: Side, never: set[str | None]
) -> None:
    outcome = meet(ours, theirs)
    assert outcome.pending == {}
    assert not outcome.values(TEAM) & never


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param(("In", "red"), ("In", "blue"), id="in-in-disjoint"),
        pytest.param(("In", "red"), ("NotIn", "red", "blue"), id="in-notin-cancelling"),
        pytest.param(("In", "red"), ("DoesNotExist",), id="in-absent"),
        pytest.param(("NotIn", "red", "blue"), ("In", "red"), id="notin-in-cancelling"),
        pytest.param(("Exists",), ("DoesNotExist",), id="exists-absent"),
        pytest.param(("DoesNotExist",), ("In", "red"), id="absent-in"),
        pytest.param(("DoesNotExist",), ("Exists",), id="absent-exists"),
        pytest.param(NOTHING, ("In", "red"), id="empty-in"),
        pytest.param(NOTHING, ("Exists",), id="empty-exists"),
    ],
)
def test_what_one_forbids_is_not_made(ours: Side, theirs: Side) -> None:
    outcome = meet(ours, theirs)
    assert outcome.new == ()
    assert TEAM in outcome.pending["a"] or "all labels it needs" in outcome.pending["a"]


def test_a_pod_that_is_silent_accepts_any_value() -> None:
    assert meet(("Exists",), NOTHING).is_placed("a")


def test_a_label_that_must_not_be_red_may_be_left_out() -> None:
    assert meet(("NotIn", "red"), ("DoesNotExist",)).values(TEAM) == {None}
