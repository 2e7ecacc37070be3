"""Laws of quantities, amounts, taints and selectors."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from shared.model.kubernetes.taints import Effect, Taint, Toleration, first_untolerated
from shared.model.quantity import (
    format_bytes,
    format_cpu,
    parse_amount,
    parse_cpu_millis,
    parse_quantity,
)
from shared.model.resources import Resources
from tests.property.strategies import NASTY_QUANTITIES, amounts, taints, tolerations

whole = st.integers(-(2**70), 2**70)


@given(whole)
@example(0)
@example(2**60)
def test_what_is_written_is_read_back(amount: int) -> None:
    assert parse_amount(format_bytes(amount)) == amount
    assert parse_cpu_millis(format_cpu(amount)) == amount


@given(st.sampled_from(NASTY_QUANTITIES))
def test_rounding_is_up_and_by_less_than_one(text: str) -> None:
    exact = parse_quantity(text)
    assert exact <= parse_amount(text) < exact + 1
    assert exact * 1000 <= parse_cpu_millis(text) < exact * 1000 + 1


@given(st.integers(-(10**9), 10**9), st.sampled_from(("n", "u", "m", "", "k", "M", "Ki", "Mi")))
def test_a_sign_and_a_suffix_scale_the_number(number: int, suffix: str) -> None:
    assert parse_quantity(f"{number}{suffix}") == number * parse_quantity(f"1{suffix}")


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_that_yaml_has_read_already_are_taken(number: float) -> None:
    assert parse_quantity(number) == Fraction(str(number))


@given(amounts, amounts, amounts)
def test_adding_commutes_and_associates(a: Resources, b: Resources, c: Resources) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == Resources.total((a, b, c))
    assert a + Resources() == a
    assert (a + b) - b == a
    assert a.times(3) == a + a + a


@given(amounts, amounts, amounts)
def test_whatever_fits_still_fits_a_larger_room(
    a: Resources, room: Resources, more: Resources
) -> None:
    larger = room + Resources.from_mapping({k: max(v, 0) for k, v in more.items})
    if a.fits(room):
        assert a.fits(larger)
        assert not a.exceeding(room)
    else:
        assert a.exceeding(room)


@given(amounts, amounts)
def test_the_largest_of_two_holds_both(a: Resources, b: Resources) -> None:
    most = a.largest(b)
    assert most == b.largest(a)
    assert a.fits(most)
    assert b.fits(most)


@given(amounts)
def test_amounts_become_quantities_that_are_read_back(a: Resources) -> None:
    assert Resources.parse(a.to_quantities()) == a


@given(st.lists(taints, max_size=4), st.lists(tolerations, max_size=4))
def test_a_pod_is_kept_away_by_the_first_taint_it_does_not_tolerate(
    standing: list[Taint], accepted: list[Toleration]
) -> None:
    refusing = [
        taint
        for taint in standing
        if taint.effect != Effect.PREFER_NO_SCHEDULE
        and not any(toleration.tolerates(taint) for toleration in accepted)
    ]
    assert first_untolerated(standing, accepted) == (refusing[0] if refusing else None)


@given(taints)
def test_an_empty_key_with_exists_tolerates_everything(taint: Taint) -> None:
    assert Toleration(operator="Exists").tolerates(taint)
    assert not Toleration(operator="Equal", value=taint.value).tolerates(taint)
