"""The sets of values behind requirements."""

from shared.model.requirements import Requirement

KEY = "example.com/letter"
ONLY_A, ONLY_B = Requirement.of(KEY, "a"), Requirement.of(KEY, "b")
A_OR_B = Requirement.of(KEY, "a", "b")
NOT_A = Requirement.parse(KEY, "NotIn", ["a"])
FULL = Requirement.parse(KEY, "Exists")
EMPTY = Requirement(key=KEY, complement=False)


def test_disjoint_sets_share_nothing() -> None:
    both = ONLY_A.intersect(ONLY_B)
    assert both.is_empty()
    assert both == EMPTY


def test_a_set_shares_nothing_with_all_but_itself() -> None:
    assert ONLY_A.intersect(NOT_A).is_empty()
    assert NOT_A.intersect(ONLY_A) == EMPTY


def test_a_set_within_another_is_what_they_share() -> None:
    assert ONLY_A.intersect(A_OR_B) == ONLY_A
    assert A_OR_B.intersect(ONLY_A) == ONLY_A


def test_what_the_full_set_shares_with_another_is_the_other() -> None:
    assert ONLY_A.intersect(FULL) == ONLY_A
    assert FULL.intersect(A_OR_B) == A_OR_B
    assert FULL.intersect(FULL) == FULL


def test_nothing_shares_anything_with_the_empty_set() -> None:
    for requirement in (ONLY_A, A_OR_B, NOT_A, FULL, EMPTY):
        assert requirement.intersect(EMPTY) == EMPTY


def test_two_values_are_two() -> None:
    assert len(A_OR_B.values) == 2
    assert Requirement.of(KEY, "a", "b", "a") == A_OR_B


def test_the_empty_set_has_no_value() -> None:
    assert EMPTY.values == frozenset()
    assert not EMPTY.has_value()
    assert not EMPTY.allows("a")


def test_the_full_set_leaves_no_value_out() -> None:
    assert FULL.complement
    assert FULL.values == frozenset()
    assert all(FULL.allows(str(number)) for number in range(-500, 500))


def test_all_but_a_value_leaves_that_one_out() -> None:
    assert not NOT_A.allows("a")
    assert NOT_A.allows("b")


def test_a_set_has_no_value_but_its_own() -> None:
    assert ONLY_A.allows("a")
    assert not ONLY_A.allows("b")
