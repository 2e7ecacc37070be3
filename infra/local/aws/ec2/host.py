"""What this package needs of the process that hosts it, and how it reads control requests."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from infra.local.aws.control import ControlError, TargetService, Verb

Json = Mapping[str, Any]


class Host(Protocol):
    """The part of the embedded AWS's control registry that EC2 uses.

    Attributes:
        region: where verbs act that name no Region.
        account_id: the account of the emulator.
    """

    region: str
    account_id: str

    def verb(self, name: str) -> Callable[[Verb], Verb]:
        """Return a decorator that serves a function as POST /_dovetail/NAME."""
        ...

    def service(self, target: str) -> Callable[[TargetService], TargetService]:
        """Return a decorator that answers `X-Amz-Target: <target>.<operation>`."""
        ...

    def emit_event(
        self,
        source: str,
        detail_type: str,
        detail: Mapping[str, Any],
        *,
        resources: tuple[str, ...] = (),
    ) -> str:
        """Put an event on the default bus and return its id."""
        ...

    def on_reset(self, call: Callable[[], None]) -> None:
        """Run `call` when everything is forgotten."""
        ...

    def on_stop(self, call: Callable[[], None]) -> None:
        """Run `call` when the server ends."""
        ...


def text(body: Json, name: str, default: str | None = None) -> str:
    """Read a text field of a control request.

    Raises:
        ControlError: the field is missing, empty or no text.
    """
    value = body.get(name, default)
    if not isinstance(value, str) or not value:
        raise ControlError(f"{name}: {value!r} is not a non-empty text: send {name} as a string")
    return value


def number(body: Json, name: str, default: float | None = None) -> float:
    """Read a number of zero or more."""
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ControlError(f"{name}: {value!r} is not usable: send a number of zero or more")
    return float(value)


def choice(body: Json, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
    """Read a text field that has a fixed set of values."""
    value = text(body, name, default)
    if value not in allowed:
        raise ControlError(f"{name}: {value!r} is unknown: send one of {', '.join(allowed)}")
    return value
