"""Coalesces announcements into few PutEvents calls, retries failures and counts what is dropped.

Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html (2026-08): at
most 10 entries a call, 256 KB in total.

A call has messages of one kind. IAM evaluates a call with the detail types of all its entries, and
whether a key with several values matches depends on the operator in the policy; a single value
matches with any of them.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
(2026-11).
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from functions.forwarder.observer import Announcement, Ref
from shared.model.errors import AutoscalerError, RetryableError
from shared.model.messages.message import (
    MAX_OBJECTS,
    Message,
    MessageKind,
    ObjectRef,
    encode,
    make_message,
)

COALESCE: Final = timedelta(milliseconds=100)
LEADING_AFTER: Final = timedelta(seconds=20)
MAX_ENTRIES: Final = 10
MAX_BYTES: Final = 240_000
MAX_WAITING: Final = 20_000
FIRST_DELAY: Final = timedelta(seconds=0.5)
LONGEST_DELAY: Final = timedelta(seconds=30)
_NAME_LENGTH: Final = 253
_ID_LENGTH: Final = 64
_LOG: Final = logging.getLogger(__name__)


class EventBus(Protocol):
    """The event bus."""

    def publish(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Publish messages in one call; return the positions of those that were refused.

        Raises:
            AutoscalerError: If none was published, or the outcome is unknown.
        """
        ...


class _Unsent:
    """Unsent objects of one kind, the newest version of each, and when the first was added."""

    def __init__(self, since: datetime) -> None:
        self.since = since
        self.refs: dict[str, Ref] = {}


class OutgoingMessages:
    """Queues announcements and returns the messages for one call at a time.

    An object that is announced twice before it is sent is sent once. Objects that a call did not
    deliver return to the queue and are sent again after a growing delay. The queue holds at most
    20,000 objects of a kind: the oldest are dropped and counted; the observer announces them again,
    or sweep finds them.

    Args:
        cluster: Name of the cluster.
        random_fraction: Random numbers from 0 to 1, for jitter.

    Attributes:
        sent: Messages delivered.
        failures: Messages that had to be sent again.
        dropped: Objects dropped.
    """

    def __init__(self, cluster: str, random_fraction: Callable[[], float]) -> None:
        self._cluster = cluster
        self._random_fraction = random_fraction
        self._waiting: dict[MessageKind, _Unsent] = {}
        self._last_sent: dict[MessageKind, datetime] = {}
        self._delay = FIRST_DELAY
        self._not_before: datetime | None = None
        self.sent = 0
        self.failures = 0
        self.dropped = 0

    def __len__(self) -> int:
        return sum(len(waiting.refs) for waiting in self._waiting.values())

    def add(self, announcements: Iterable[Announcement], now: datetime) -> None:
        """Add announcements to the queue."""
        for kind, ref in announcements:
            waiting = self._waiting.setdefault(kind, _Unsent(now))
            if ref is not None and 0 < len(ref.name) <= _NAME_LENGTH:
                self._keep(waiting, ref)

    def due_at(self) -> datetime | None:
        """Return when the next call is due, None when nothing is queued."""
        if not self._waiting:
            return None
        due = min(waiting.since for waiting in self._waiting.values()) + COALESCE
        return due if self._not_before is None else max(due, self._not_before)

    def next_messages(self, now: datetime, *, at_once: bool = False) -> tuple[Message, ...]:
        """Return the messages of the next call, none when it is not due yet.

        They are of one kind; kinds take turns, so that a refused kind does not delay the others.

        Args:
            now: The current time.
            at_once: Whether to ignore coalescing and delays, because the process is ending.
        """
        due = self.due_at()
        if due is None or (due > now and not at_once):
            return ()
        kind = next(iter(self._waiting))
        messages: list[Message] = []
        size = 0
        while kind in self._waiting and len(messages) < MAX_ENTRIES:
            message = self._next(kind, now)
            size += len(json.dumps(encode(message)))
            if messages and size > MAX_BYTES:
                self._requeue(message)
                break
            self._last_sent[kind] = now
            messages.append(message)
        if kind in self._waiting:
            self._waiting[kind] = self._waiting.pop(kind)
        return tuple(messages)

    def record_response(
        self, messages: Sequence[Message], refused_positions: Iterable[int], now: datetime
    ) -> None:
        """Record the response to a call; refused messages are sent again later."""
        again = sorted(set(refused_positions))
        self.sent += len(messages) - len(again)
        if not again:
            self._delay, self._not_before = FIRST_DELAY, None
            return
        _LOG.warning("%d of %d messages were refused by the bus", len(again), len(messages))
        self._back_off([messages[number] for number in again], now)

    def record_failure(
        self, messages: Sequence[Message], error: AutoscalerError, now: datetime
    ) -> None:
        """Record that a call delivered nothing; its messages are sent again later."""
        _LOG.warning("%d messages could not be published: %s", len(messages), error)
        if isinstance(error, RetryableError) and error.delay is not None:
            self._delay = min(max(self._delay, error.delay), LONGEST_DELAY)
        self._back_off(messages, now)

    def _next(self, kind: MessageKind, now: datetime) -> Message:
        """Return a message of up to 200 objects of a kind, and remove these from the queue."""
        waiting = self._waiting[kind]
        keys = list(waiting.refs)[:MAX_OBJECTS]
        objects = [_object(waiting.refs.pop(key)) for key in keys]
        if not waiting.refs:
            del self._waiting[kind]
        last = self._last_sent.get(kind)
        leading = last is None or now - last >= LEADING_AFTER
        return make_message(kind, self._cluster, waiting.since, objects=objects, leading=leading)

    def _requeue(self, message: Message) -> None:
        """Put the objects of a message back into the queue; newer versions in the queue stay."""
        waiting = self._waiting.setdefault(message.kind, _Unsent(message.detail.at))
        waiting.since = min(waiting.since, message.detail.at)
        newer = waiting.refs
        waiting.refs = {}
        for object_ref in message.detail.objects:
            ref = Ref(
                object_ref.namespace, object_ref.name, object_ref.uid, object_ref.resource_version
            )
            self._keep(waiting, ref)
        for ref in newer.values():
            self._keep(waiting, ref)

    def _back_off(self, messages: Sequence[Message], now: datetime) -> None:
        self.failures += len(messages)
        for message in reversed(messages):
            if message.detail.leading:
                # It was not delivered: the next message leads.
                self._last_sent.pop(message.kind, None)
            self._requeue(message)
        self._not_before = now + self._delay * (0.5 + self._random_fraction() / 2)
        self._delay = min(self._delay * 2, LONGEST_DELAY)

    def _keep(self, waiting: _Unsent, ref: Ref) -> None:
        waiting.refs[ref.uid or f"{ref.namespace}/{ref.name}"] = ref
        if len(waiting.refs) > MAX_WAITING:
            oldest = next(iter(waiting.refs))
            del waiting.refs[oldest]
            self.dropped += 1
            if self.dropped % 1000 == 1:
                _LOG.error("%d announcements were dropped: the bus cannot be reached", self.dropped)


def _object(ref: Ref) -> ObjectRef:
    """Return an object as it is sent; ids longer than any real one are truncated, not refused."""
    return ObjectRef(
        namespace=ref.namespace,
        name=ref.name,
        uid=ref.uid[:_ID_LENGTH],
        resource_version=ref.version[:_ID_LENGTH],
    )
