"""How it is said: coalesced, in few calls, again until it is heard, and never lost silently.

Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html (2026-08): at
most 10 entries a call, 256 KB in total.

A call has messages of one kind. IAM judges a call by the kinds of all its entries, and whether a
key with several values fits depends on how a policy asks: one value fits, however it does.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
(2026-11).
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from functions.forwarder.watch import Announcement, Ref
from shared.messages.wake import MAX_OBJECTS, Kind, Message, ObjectRef, encode, wake
from shared.model.errors import AutoscalerError, RetryableError

COALESCE: Final = timedelta(milliseconds=100)
LEAD: Final = timedelta(seconds=20)
MAX_ENTRIES: Final = 10
MAX_BYTES: Final = 240_000
MAX_WAITING: Final = 20_000
FIRST_DELAY: Final = timedelta(seconds=0.5)
LONGEST_DELAY: Final = timedelta(seconds=30)
_NAME_LENGTH: Final = 253
_ID_LENGTH: Final = 64
_LOG: Final = logging.getLogger(__name__)


class Bus(Protocol):
    """The event bus."""

    def publish(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Publish messages in one call; return the positions of those that were refused.

        Raises:
            AutoscalerError: If none was published, or the outcome is unknown.
        """
        ...


class _Waiting:
    """What is to be said of one kind: the objects, newest version each, and since when."""

    def __init__(self, since: datetime) -> None:
        self.since = since
        self.refs: dict[str, Ref] = {}


class Outgoing:
    """Collects announcements and hands them out as the messages of one call at a time.

    An object that is announced twice before the first was sent goes once. What a call could not
    deliver goes back to the rest and is sent again after a growing delay. More than 20,000
    objects of a kind are not held: the oldest go, are counted, and will be said again by the
    repeats of the watch or by sweep.

    Args:
        cluster: Its name.
        spread: Random numbers from 0 to 1, for jitter.

    Attributes:
        sent: Messages delivered.
        failures: Messages that had to be sent again.
        lost: Objects dropped.
    """

    def __init__(self, cluster: str, spread: Callable[[], float]) -> None:
        self._cluster = cluster
        self._spread = spread
        self._waiting: dict[Kind, _Waiting] = {}
        self._last_sent: dict[Kind, datetime] = {}
        self._delay = FIRST_DELAY
        self._not_before: datetime | None = None
        self.sent = 0
        self.failures = 0
        self.lost = 0

    def __len__(self) -> int:
        return sum(len(waiting.refs) for waiting in self._waiting.values())

    def add(self, announcements: Iterable[Announcement], now: datetime) -> None:
        """Collect announcements."""
        for kind, ref in announcements:
            waiting = self._waiting.setdefault(kind, _Waiting(now))
            if ref is not None and 0 < len(ref.name) <= _NAME_LENGTH:
                self._keep(waiting, ref)

    def next_at(self) -> datetime | None:
        """Return when `take` has something, None when there is nothing to say."""
        if not self._waiting:
            return None
        due = min(waiting.since for waiting in self._waiting.values()) + COALESCE
        return due if self._not_before is None else max(due, self._not_before)

    def take(self, now: datetime, *, at_once: bool = False) -> tuple[Message, ...]:
        """Return the messages of the next call, none when it is not yet time.

        They are of one kind; kinds take turns, so that one that is refused keeps no other waiting.

        Args:
            now: The current time.
            at_once: Do not wait for more, nor for the end of a delay: the process is ending.
        """
        due = self.next_at()
        if due is None or (due > now and not at_once):
            return ()
        kind = next(iter(self._waiting))
        messages: list[Message] = []
        size = 0
        while kind in self._waiting and len(messages) < MAX_ENTRIES:
            message = self._next(kind, now)
            size += len(json.dumps(encode(message)))
            if messages and size > MAX_BYTES:
                self._return(message)
                break
            self._last_sent[kind] = now
            messages.append(message)
        if kind in self._waiting:
            self._waiting[kind] = self._waiting.pop(kind)
        return tuple(messages)

    def settle(self, messages: Sequence[Message], refused: Iterable[int], now: datetime) -> None:
        """Note how a call went; what was refused is sent again later."""
        again = sorted(set(refused))
        self.sent += len(messages) - len(again)
        if not again:
            self._delay, self._not_before = FIRST_DELAY, None
            return
        _LOG.warning("%d of %d messages were refused by the bus", len(again), len(messages))
        self._back_off([messages[number] for number in again], now)

    def fail(self, messages: Sequence[Message], error: AutoscalerError, now: datetime) -> None:
        """Note that a call delivered nothing; all of it is sent again later."""
        _LOG.warning("%d messages could not be published: %s", len(messages), error)
        if isinstance(error, RetryableError) and error.delay is not None:
            self._delay = min(max(self._delay, error.delay), LONGEST_DELAY)
        self._back_off(messages, now)

    def _next(self, kind: Kind, now: datetime) -> Message:
        """Return a message of up to 200 objects of a kind, and forget those."""
        waiting = self._waiting[kind]
        taken = list(waiting.refs)[:MAX_OBJECTS]
        objects = [_object(waiting.refs.pop(key)) for key in taken]
        if not waiting.refs:
            del self._waiting[kind]
        last = self._last_sent.get(kind)
        leading = last is None or now - last >= LEAD
        return wake(kind, self._cluster, waiting.since, objects=objects, leading=leading)

    def _return(self, message: Message) -> None:
        """Take the objects of a message back, unless something newer is known of them."""
        waiting = self._waiting.setdefault(message.kind, _Waiting(message.wake.at))
        waiting.since = min(waiting.since, message.wake.at)
        newer = waiting.refs
        waiting.refs = {}
        for object_ref in message.wake.objects:
            ref = Ref(
                object_ref.namespace, object_ref.name, object_ref.uid, object_ref.resource_version
            )
            self._keep(waiting, ref)
        for ref in newer.values():
            self._keep(waiting, ref)

    def _back_off(self, messages: Sequence[Message], now: datetime) -> None:
        self.failures += len(messages)
        for message in reversed(messages):
            if message.wake.leading:
                # It was not delivered: the next one leads.
                self._last_sent.pop(message.kind, None)
            self._return(message)
        self._not_before = now + self._delay * (0.5 + self._spread() / 2)
        self._delay = min(self._delay * 2, LONGEST_DELAY)

    def _keep(self, waiting: _Waiting, ref: Ref) -> None:
        waiting.refs[ref.uid or f"{ref.namespace}/{ref.name}"] = ref
        if len(waiting.refs) > MAX_WAITING:
            oldest = next(iter(waiting.refs))
            del waiting.refs[oldest]
            self.lost += 1
            if self.lost % 1000 == 1:
                _LOG.error("%d announcements were dropped: the bus cannot be reached", self.lost)


def _object(ref: Ref) -> ObjectRef:
    """Return what goes on the wire; ids longer than any real one are cut, never refused."""
    return ObjectRef(
        namespace=ref.namespace,
        name=ref.name,
        uid=ref.uid[:_ID_LENGTH],
        resource_version=ref.version[:_ID_LENGTH],
    )
