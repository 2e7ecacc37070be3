"""The control verbs: what tests and the demo may do to the embedded AWS API that no AWS API offers.

Verbs answer `POST /_dovetail/<name>` with a JSON object as body and as answer. Parts of the
emulation register theirs on one `Control`, which also carries what they share: where the
server listens, the default bus, and who wants to know about a reset or the end.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Verb = Callable[[Json], Any]
TargetService = Callable[[str, Json], Json]
"""Answers (operation, request body) of an AWS JSON API, for example GetProducts."""
EventSink = Callable[[Json], str]

ACCOUNT_ID = "123456789012"


class ControlError(Exception):
    """A verb was asked something it cannot do; the message names field, value and remedy."""


def text(body: Json, name: str, default: str | None = None) -> str:
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


class ServiceError(Exception):
    """An AWS JSON API refuses: `code` is the AWS error code the SDK will report."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


@dataclass(kw_only=True)
class Control:
    """Registry of verbs, extra AWS JSON services and lifetime hooks of one server."""

    url: str
    region: str = "us-east-1"
    account_id: str = ACCOUNT_ID
    verbs: dict[str, Verb] = field(default_factory=dict)
    services: dict[str, TargetService] = field(default_factory=dict)
    harm: Counter[tuple[str, str]] = field(default_factory=Counter)
    _launch_hooks: list[Callable[[], None]] = field(default_factory=list)
    _reset_hooks: list[Callable[[], None]] = field(default_factory=list)
    _stop_hooks: list[Callable[[], None]] = field(default_factory=list)
    _event_sink: EventSink | None = None

    def verb(self, name: str) -> Callable[[Verb], Verb]:
        """Register the decorated callable as `POST /_dovetail/<name>`.

        It gets the request's JSON object (empty when there was no body) and returns what
        JSON can hold. `ControlError` becomes status 400 with its message.
        """

        def register(call: Verb) -> Verb:
            if name in self.verbs:
                raise ValueError(f"control verb {name!r} is taken: choose another name")
            self.verbs[name] = call
            return call

        return register

    def service(self, target: str) -> Callable[[TargetService], TargetService]:
        """Answer every request whose `X-Amz-Target` starts with `<target>.` by the callable.

        For AWS JSON APIs moto does not have, for example `AWSPriceListService`.
        """

        def register(call: TargetService) -> TargetService:
            self.services[target] = call
            return call

        return register

    def on_reset(self, call: Callable[[], None]) -> None:
        """Run `call` after moto forgot everything (verb `reset`), in order of registration."""
        self._reset_hooks.append(call)

    def on_stop(self, call: Callable[[], None]) -> None:
        """Run `call` when the server ends, last registered first."""
        self._stop_hooks.append(call)

    def on_launch(self, call: Callable[[], None]) -> None:
        """Run `call` each time EC2 has launched instances, before it says so to the caller."""
        self._launch_hooks.append(call)

    def launched(self) -> None:
        for hook in self._launch_hooks:
            hook()

    def harmed(self, kind: str, struck: str) -> None:
        """Count one thing that went wrong on purpose."""
        self.harm[kind, struck] += 1

    def deliver_events_to(self, sink: EventSink) -> None:
        """Name the bus: `sink` takes one event (AWS event envelope) and returns its id."""
        self._event_sink = sink

    def emit_event(
        self,
        source: str,
        detail_type: str,
        detail: Mapping[str, Any],
        *,
        resources: tuple[str, ...] = (),
    ) -> str:
        """Put an event on the default bus as an AWS service would, and return its id.

        This is how `aws.ec2` warnings arrive: the public PutEvents refuses sources that
        start with `aws.`, as AWS does.
        """
        if self._event_sink is None:
            raise ControlError("events cannot be emitted: the event bus is not running yet")
        return self._event_sink(
            {
                "source": source,
                "detail-type": detail_type,
                "detail": dict(detail),
                "resources": list(resources),
            }
        )

    def call(self, name: str, arguments: Json) -> Any:
        verb = self.verbs.get(name)
        if verb is None:
            known = ", ".join(sorted(self.verbs))
            raise ControlError(f"control verb {name!r} is unknown: use one of {known}")
        return verb(arguments)

    def reset(self) -> None:
        self.harm.clear()
        for hook in self._reset_hooks:
            hook()

    def stop(self) -> None:
        for hook in reversed(self._stop_hooks):
            hook()
