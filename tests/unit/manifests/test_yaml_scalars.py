"""What plain words of YAML mean to kubectl."""

from typing import Any

import pytest

from functions.cli.plan.reading.documents import InvalidDocumentError, read_documents


def read(written: str) -> Any:
    (document,) = read_documents("f", f"value: {written}\n".encode())
    return document.raw["value"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("=", "="),
        ("2024-13-45", "2024-13-45"),
        ("2024-01-15", "2024-01-15"),
        ("2024-01-15T10:00:00Z", "2024-01-15T10:00:00Z"),
        ("!!timestamp 2024-01-15", "2024-01-15"),
        ("22:30", "22:30"),
        ("1:30.5", "1:30.5"),
        ("y", True),
        ("Off", False),
        ("oN", "oN"),
        ("~", None),
        ("", None),
        ("-1_000", -1000),
        ("017", 15),
        ("-0o17", -15),
        ("0x1F", 31),
        ("+0b11", 3),
        ("0", 0),
        ("019", 19.0),
        ("1e3", 1000.0),
        ("1e400", "1e400"),
        ("-.Inf", float("-inf")),
        ("-.5", -0.5),
        ("2.", 2.0),
        ("1.5.0", "1.5.0"),
        ("0x_", "0x_"),
        ("._", "._"),
        ("<", "<"),
        ("n1", "n1"),
    ],
)
def test_a_plain_word_means_what_kubectl_takes_it_for(written: str, value: object) -> None:
    found = read(written)
    assert (type(found), found) == (type(value), value)


def test_keys_that_look_like_dates_or_times_stay_as_written() -> None:
    assert read("{2024-01-15: a, 22:30: b, =: c}") == {"2024-01-15": "a", "22:30": "b", "=": "c"}


@pytest.mark.parametrize("written", ["!!bool x", "!!float ''"])
def test_a_value_that_is_not_what_its_tag_says_is_refused(written: str) -> None:
    with pytest.raises(InvalidDocumentError, match="a value is not what its tag says"):
        read(written)
