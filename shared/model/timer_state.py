"""The state of a timer, which its execution in Step Functions keeps between two steps."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from shared.model.codec import CodecError, from_plain, to_plain
from shared.model.errors import InvalidMessageError
from shared.model.values import replace

# An execution lives at most a year. A longer wait is shortened; sweep starts a timer again that
# ended before its time.
LONGEST_WAIT: Final = timedelta(days=300)
DONE: Final = "done"
WAIT: Final = "wait"


class TimerState(Struct, frozen=True, kw_only=True):
    """The state of a timer; a field that is None is absent from the execution's state.

    Attributes:
        node: Name of the node, empty when the instance has no Node.
        uid: Uid of the node, or the instance id where there is none.
        next: `wait` or `done`, which the state machine reads.
        wait_seconds: How long the state machine waits before the next step.
        result: How the timer ended, for people.
        since: Time of the event that started the timer, in ISO format.
        steps: How many steps this execution has taken.
        run: Name of the execution, where another execution started the drain.
        blocked: How many pods blocked the drain at its last step.
        tried: How often a refused drain was tried.
        volumes_since: When waiting for volumes to be detached began.
        unread_since: Since when its node cannot be read past the drain's deadline.
        undeleted_since: Since when calls that delete pods past the drain's deadline fail.
        freed_since: When the pods of an instance that does not run were first deleted.
        drained: Whether nothing was left to evict, and this was recorded.
        released_micros_per_hour: The price of the terminated instance.
        remove: Name and uid of each node that a replacement removes.
        new_nodes: How many nodes the plan launches.
        registration_seconds: How long a new node may take to join.
        image_stopped: Whether the instance was the canary of a new image.
    """

    cluster: str
    node: str
    uid: str
    next: str = WAIT
    wait_seconds: int = 0
    result: str | None = None
    since: str | None = None
    steps: int | None = None
    instance_id: str | None = None
    run: str | None = None
    blocked: int | None = None
    tried: int | None = None
    volumes_since: str | None = None
    unread_since: str | None = None
    undeleted_since: str | None = None
    freed_since: str | None = None
    drained: bool | None = None
    released_micros_per_hour: int | None = None
    plan_id: str | None = None
    reason: str | None = None
    remove: tuple[tuple[str, str], ...] | None = None
    new_nodes: int | None = None
    registration_seconds: int | None = None
    image_stopped: bool | None = None

    def wait_again(self, span: timedelta) -> "TimerState":
        """Return the state that makes the timer wait and step once more."""
        return replace(self, next=WAIT, wait_seconds=whole_seconds(span))

    def finish(self, result: str) -> "TimerState":
        """Return the state that ends the timer; `result` says how, for people."""
        return replace(self, next=DONE, wait_seconds=0, result=result)

    def text(self, name: str) -> str:
        """Return a text field that this kind of timer always has.

        Raises:
            InvalidMessageError: If it is absent.
        """
        return text_of({name: getattr(self, name)}, name)

    def span(self, name: str) -> timedelta:
        """Return a number of seconds that this kind of timer always has, as a span.

        Raises:
            InvalidMessageError: If it is absent.
        """
        seconds = getattr(self, name)
        if seconds is None:
            raise InvalidMessageError(f"{name}: None: expected int")
        return timedelta(seconds=seconds)

    def time(self, name: str) -> datetime | None:
        """Return a time, None when the state has none.

        Raises:
            InvalidMessageError: If it is no time.
        """
        written = getattr(self, name)
        try:
            return None if written is None else datetime.fromisoformat(written)
        except ValueError as error:
            raise InvalidMessageError(f"{name}: {written!r}: expected a time") from error

    def encode(self) -> dict[str, Any]:
        """Return the state as the state machine passes it on."""
        given = {name: value for name, value in to_plain(self).items() if value is not None}
        return {"version": 1, **given}


def decode_state(raw: Mapping[str, Any]) -> TimerState:
    """Return the state that an execution passes to a step; unknown fields are left out.

    Raises:
        InvalidMessageError: If cluster, node or uid is absent, or a field has another type.
    """
    try:
        return from_plain(TimerState, raw)
    except CodecError as error:
        raise InvalidMessageError(str(error)) from error


def text_of(raw: Mapping[str, Any], name: str) -> str:
    """Return a text field of a timer's state.

    Raises:
        InvalidMessageError: If it is absent or no text.
    """
    value = raw.get(name)
    if not isinstance(value, str):
        raise InvalidMessageError(f"{name}: {value!r}: expected a text")
    return value


def whole_seconds(span: timedelta) -> int:
    """Return a span in whole seconds, rounded up, between 0 and 300 days."""
    return math.ceil(max(min(span, LONGEST_WAIT).total_seconds(), 0))
