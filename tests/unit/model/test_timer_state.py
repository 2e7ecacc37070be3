"""The state of a timer is what its execution keeps between two steps."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.model.errors import InvalidMessageError
from shared.model.timer_state import TimerState, decode_state, whole_seconds

LEAST: dict[str, Any] = {"cluster": "test", "node": "n1", "uid": "u1"}


def test_a_state_is_the_same_after_encoding_and_decoding() -> None:
    state = TimerState(
        cluster="test",
        node="n1",
        uid="u1",
        since="2026-01-01T00:00:00+00:00",
        steps=0,
        remove=(("n1", "u1"), ("n2", "u2")),
        new_nodes=1,
        drained=True,
    )

    assert state.encode() == {
        **LEAST,
        "version": 1,
        "next": "wait",
        "wait_seconds": 0,
        "since": "2026-01-01T00:00:00+00:00",
        "steps": 0,
        "remove": (("n1", "u1"), ("n2", "u2")),
        "new_nodes": 1,
        "drained": True,
    }
    assert decode_state(state.encode()).encode() == state.encode()
    assert state.text("since") == "2026-01-01T00:00:00+00:00"
    assert state.time("since") == datetime(2026, 1, 1, tzinfo=UTC)
    assert state.time("volumes_since") is None


def test_a_field_that_is_not_known_is_left_out() -> None:
    """While a deployment is under way, a function may get what a newer one wrote."""
    assert decode_state({**LEAST, "later": [1]}) == decode_state(LEAST)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"uid": None}, "uid: Expected `str`, got `null`"),
        ({"steps": "many"}, "steps: Expected `int | null`, got `str`"),
        ({"drained": 1}, "drained: Expected `bool | null`, got `int`"),
        ({"remove": [["n1"]]}, "remove.0: Expected `array` of length 2, got 1"),
    ],
)
def test_a_wrong_field_is_named(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidMessageError, match=re.escape(text)):
        decode_state({**LEAST, **wrong})


def test_a_time_or_text_that_is_missing_or_wrong_is_named() -> None:
    state = decode_state({**LEAST, "since": "yesterday"})

    with pytest.raises(InvalidMessageError, match="since: 'yesterday': expected a time"):
        state.time("since")
    with pytest.raises(InvalidMessageError, match="plan_id: None: expected a text"):
        state.text("plan_id")
    with pytest.raises(InvalidMessageError, match="registration_seconds: None: expected int"):
        state.span("registration_seconds")


def test_a_wait_is_whole_seconds_between_zero_and_300_days() -> None:
    spans = (timedelta(seconds=1.2), timedelta(seconds=-1), timedelta(days=400))

    assert [whole_seconds(span) for span in spans] == [2, 0, 300 * 24 * 3600]
