"""Quantities and resources."""

from fractions import Fraction

import pytest

from shared.model.quantity import (
    format_bytes,
    format_cpu,
    parse_amount,
    parse_cpu_millis,
    parse_quantity,
)
from shared.model.resources import Resources, format_amount, readable_amount


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("250m", Fraction(1, 4)),
        ("1.5", Fraction(3, 2)),
        ("2.", 2),
        (".5", Fraction(1, 2)),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("-1Ki", -1024),
        ("5u", Fraction(5, 10**6)),
        (3, 3),
        (0.1, Fraction(1, 10)),
    ],
)
def test_quantities_are_read_exactly(text: str | float, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "1GiB", "1 Gi", "m", "1KI", "0x10", "٣", "1Gi\n", "1e123", "1.2.3", True, float("inf")],
)
def test_what_is_no_quantity_is_refused_with_the_suffixes_there_are(text: str | float) -> None:
    with pytest.raises(ValueError, match="is not a quantity; write a number"):
        parse_quantity(text)


def test_cpu_and_other_amounts_are_rounded_up() -> None:
    assert parse_cpu_millis("0.1m") == 1
    assert parse_cpu_millis("1.0005") == 1001
    assert parse_amount("0.5") == 1
    assert parse_amount("-0.5") == 0


def test_amounts_are_written_as_kubernetes_does() -> None:
    assert [format_cpu(n) for n in (0, 1500, 2000, -250)] == ["0", "1500m", "2", "-250m"]
    assert [format_bytes(n) for n in (0, 2**30, 1000, 3 * 2**20)] == ["0", "1Gi", "1000", "3Mi"]
    assert format_amount("hugepages-2Mi", 4 * 2**20) == "4Mi"
    assert format_amount("nvidia.com/gpu", 1024) == "1024"


@pytest.mark.parametrize(
    ("name", "amount", "down", "up"),
    [
        ("memory", 2**30, "1Gi", "1Gi"),
        ("memory", 1536 * 2**20, "1536Mi", "1536Mi"),
        ("memory", 47_244_640_176, "43.99Gi", "44Gi"),
        ("memory", 44 * 2**30 + 1, "44Gi", "44.01Gi"),
        ("ephemeral-storage", 9_999_999, "9.53Mi", "9.54Mi"),
        ("hugepages-2Mi", 2**21, "2Mi", "2Mi"),
        ("memory", 12_345_678_901_234_567_890, "10965.2Pi", "10965.2Pi"),
        ("cpu", 1_234_567, "1234567m", "1234567m"),
    ],
)
def test_an_amount_for_people_has_few_digits(name: str, amount: int, down: str, up: str) -> None:
    assert readable_amount(name, amount) == down
    assert readable_amount(name, amount, up=True) == up


def test_zeros_are_not_kept_so_equal_amounts_are_equal_values() -> None:
    assert Resources.of(cpu=0, pods=1) == Resources.of(pods=1)
    assert Resources.of(cpu=1) - Resources.of(cpu=1) == Resources()
    assert not Resources.of(cpu=0)
    assert Resources.of(cpu=5)["memory"] == 0
    assert list(Resources.of(pods=1, cpu=5)) == ["cpu", "pods"]


def test_a_quantity_that_cannot_be_read_names_its_resource() -> None:
    assert Resources.parse({"cpu": "1", "memory": "1Gi"}) == Resources.of(cpu=1000, memory=2**30)
    with pytest.raises(ValueError, match=r"^memory: 'lots' is not a quantity"):
        Resources.parse({"cpu": 1, "memory": "lots"})


def test_what_does_not_fit_is_named() -> None:
    room = Resources.of(cpu=1000, memory=-1)
    asked = Resources.of(cpu=1001, memory=1, pods=1)
    assert asked.exceeding(room) == ("cpu", "memory", "pods")
    assert not asked.fits(room)
    assert Resources.of(cpu=1000, pods=-1).fits(room)
