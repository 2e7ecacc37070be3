"""Text with half of a surrogate pair, which no file and no request can hold."""

import json
from typing import Any

import pytest
import yaml

from shared.model.surrogates import escapes_surrogate, first_surrogate

HALF = "\ud800"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (HALF, ("", HALF)),
        ({"a": [1, {"b": HALF}]}, ("a[1].b", HALF)),
        ({"a": {"k\udfff": "v"}}, ("a.k\udfff", "k\udfff")),
        ({"z": "é\udc00", "a": HALF}, ("z", "é\udc00")),
        ({"a": "\N{GRINNING FACE}", "b": [None, 1.5, True]}, None),
        ({"a": r"\\ud800"}, None),
    ],
)
def test_the_first_half_of_a_pair_is_found_with_its_place(
    value: Any, found: tuple[str, str] | None
) -> None:
    assert first_surrogate(json.loads(json.dumps(value))) == found


@pytest.mark.parametrize(
    ("text", "escapes"),
    [
        (json.dumps(HALF), True),
        (r'"\U0000D800"', True),
        ('"é"', False),
        (r'"\u00e9"', False),
    ],
)
def test_a_text_without_an_escaped_surrogate_has_none(text: str, *, escapes: bool) -> None:
    assert escapes_surrogate(text) is escapes


def test_what_aliases_repeat_is_looked_at_once() -> None:
    text = "a: &a [x, x]\nb: &b [*a, *a]\nc: ['\\ud800', *b, *b]\n"
    assert first_surrogate(yaml.safe_load(text)) is None
