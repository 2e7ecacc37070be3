"""Requirements are a set algebra: the laws of sets hold."""

from hypothesis import example, given

from shared.model.requirements import Requirement, Requirements
from tests.property.strategies import (
    NASTY_VALUES,
    label_sets,
    requirement,
    requirement_sets,
    values,
)

ANYTHING = Requirement(key="k", absent=True)
NOTHING = Requirement(key="k", complement=False)
FIVE = Requirement(key="k", minimum=5, maximum=5)


@given(requirement(), requirement())
def test_intersection_is_commutative(other_requirement: Requirement, other: Requirement) -> None:
    assert other_requirement.intersect(other) == other.intersect(other_requirement)


@given(requirement(), requirement(), requirement())
def test_intersection_is_associative(a: Requirement, b: Requirement, c: Requirement) -> None:
    assert a.intersect(b).intersect(c) == a.intersect(b.intersect(c))


@given(requirement())
def test_intersection_is_idempotent_with_an_identity_and_a_zero(
    other_requirement: Requirement,
) -> None:
    assert other_requirement.intersect(other_requirement) == other_requirement
    assert other_requirement.intersect(ANYTHING) == other_requirement
    assert other_requirement.intersect(NOTHING) == NOTHING


@given(requirement(), requirement(), values)
@example(FIVE, Requirement.parse("k", "NotIn", ["5"]), "05")
def test_a_value_is_in_both_exactly_when_it_is_in_the_intersection(
    other_requirement: Requirement, other: Requirement, value: str
) -> None:
    met = other_requirement.intersect(other)
    for candidate in (value, None):
        assert met.allows(candidate) == (
            other_requirement.allows(candidate) and other.allows(candidate)
        )


@given(requirement())
def test_normalizing_twice_changes_nothing_more(other_requirement: Requirement) -> None:
    assert other_requirement.normalized().normalized() == other_requirement.normalized()


@given(requirement(), requirement())
def test_the_normal_form_is_unique(other_requirement: Requirement, other: Requirement) -> None:
    """Two forms that differ are told apart by some value."""
    bounds = [
        b for r in (other_requirement, other) for b in (r.minimum, r.maximum) if b is not None
    ]
    near = [str(bound + step) for bound in bounds for step in (-1, 0, 1)]
    # Values that neither mentions: a text, and integers anywhere between the bounds.
    fresh = [
        "unheard-of",
        *(f"{'0' * 20}{n}" for n in range(12)),
        *(f"-{'0' * 9}{n}" for n in (2, 9)),
    ]
    candidates = [*NASTY_VALUES, *near, *fresh, *(f"0{n}" for n in near), None]
    agree = all(other_requirement.allows(value) == other.allows(value) for value in candidates)
    assert agree == (other_requirement.normalized() == other.normalized())


@given(requirement(), values)
def test_an_empty_requirement_allows_nothing(other_requirement: Requirement, value: str) -> None:
    if other_requirement.is_empty():
        assert not other_requirement.allows(value)
        assert not other_requirement.allows(None)
    if not other_requirement.has_value():
        assert not other_requirement.allows(value)


@given(requirement_sets, requirement_sets, label_sets)
def test_merged_requirements_accept_what_both_accept(
    requirements: Requirements, other: Requirements, labels: dict[str, str]
) -> None:
    merged = requirements.merge(other)
    assert merged == other.merge(requirements)
    assert merged.allow_labels(labels) == (
        requirements.allow_labels(labels) and other.allow_labels(labels)
    )
    assert (merged.first_refusing(labels) is None) == merged.allow_labels(labels)
    if merged.empty_keys():
        assert not merged.allow_labels(labels)


@given(requirement_sets)
def test_merging_is_idempotent_and_nothing_is_its_identity(requirements: Requirements) -> None:
    assert requirements.merge(requirements) == requirements
    assert requirements.merge(Requirements()) == requirements
