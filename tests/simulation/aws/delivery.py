"""Bus, queue and asynchronous calls: what is said arrives late, twice, in disorder or never."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from shared.model.errors import InvalidMessageError
from shared.model.messages.message import FAST, Message, MessageKind, encode
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel
from tests.simulation.schedule.seeded_random import between, draw

Event = Mapping[str, Any]


class Limits(NamedTuple):
    """How a function is called: what infra/aws/functions.py says of it."""

    timeout_seconds: int
    retries: int


LIMITS: Final[Mapping[str, Limits]] = {
    "provision": Limits(120, 2),
    "bind": Limits(60, 2),
    "emptiness": Limits(60, 2),
    "expiration": Limits(60, 2),
    "registration": Limits(60, 2),
    "replacement": Limits(60, 2),
    "termination": Limits(60, 2),
    "heartbeat": Limits(60, 0),
    "interrupt": Limits(60, 2),
    "sweep": Limits(60, 0),
}
WINDOW_SECONDS: Final = 1.0
VISIBILITY_SECONDS: Final = 6 * LIMITS["provision"].timeout_seconds + 1
MAX_RECEIVES: Final = 5
_QUIET: Final = 20.0
_BATCH: Final = 10
_TARGETS: Final[Mapping[str, str]] = {
    MessageKind.NODE_EMPTY: "emptiness",
    MessageKind.NODE_READY: "bind",
    MessageKind.NODE_DELETED: "termination",
    MessageKind.HEARTBEAT: "heartbeat",
}
_ON_THE_WAY: Final = (
    (Action.LOST, 0.015),
    (Action.DOUBLED, 0.05),
    (Action.DELAYED, 0.05),
    (Action.HUNDREDFOLD, 0.0003),
)
_COPIES: Final[Mapping[Action | None, int]] = {Action.DOUBLED: 2, Action.HUNDREDFOLD: 100}


class Caller(Protocol):
    """The Lambda service."""

    def __call__(self, function: str, event: Event, over: Callable[[Any], None]) -> None: ...


@dataclass
class Record:
    """One message in the queue."""

    number: int
    text: str
    visible: int
    receives: int = 0


@dataclass
class Delivery:
    """Everything between who speaks and who is called.

    Attributes:
        messages: Put on the bus or into the queue so far.
        lost: Those that never arrived, by a fault or because no target could accept them.
        early: Notices of machines that no row of the ledger named yet: interrupt ignores them.
        redelivered: Queue records that came again.
        dead: Texts in the dead-letter queues.
        back_at: Returns the microsecond from which SQS answers.
    """

    kernel: Kernel
    faults: CallFaults
    call: Caller
    messages: int = 0
    lost: int = 0
    early: int = 0
    redelivered: int = 0
    dead: list[str] = field(default_factory=list)
    queue: dict[int, Record] = field(default_factory=dict)
    back_at: Callable[[], int] = lambda: 0
    _last_busy: int = -(10**12)
    _numbers: int = 0

    # --- the bus

    def publish(self, message: Message) -> None:
        """Put a message of Dovetail on the bus: every rule that matches delivers it."""
        event = {"id": f"event-{self.messages}", **encode(message)}
        self.messages += 1
        kind = message.kind
        if kind in (MessageKind.POD_PENDING, MessageKind.PROVISIONER_CHANGED):
            self._deliver("queue", kind, lambda: self.send(json.dumps(event), 0, counted=True))
            if kind in FAST and message.detail.leading:
                self._deliver("fast lane", kind, lambda: self.invoke("provision", event))
        else:
            self._deliver(_TARGETS[kind], kind, lambda: self.invoke(_TARGETS[kind], event))

    def notice(self, event: Event, is_known: Callable[[], bool]) -> None:
        """Deliver what AWS says of a machine."""

        def arrive() -> None:
            self.early += not is_known()
            self.invoke("interrupt", event)

        self.messages += 1
        self._deliver("interrupt", "notice", arrive)

    def _deliver(self, target: str, kind: str, arrive: Callable[[], None]) -> None:
        site = Site("bus", target, kind)
        fault = self.faults.event(site, self.kernel.time, *_ON_THE_WAY)
        number = self.faults.counts[site]
        way = between(0.02, 0.6, self.faults.seed, "way", site, number)
        if fault is Action.LOST:
            self.lost += 1
            return
        if fault is Action.DELAYED:
            way = between(5, 90, self.faults.seed, "late", site, number)
        self.kernel.after(way, arrive)
        for copy in range(1, _COPIES.get(fault, 1)):
            again = between(0.1, 60, self.faults.seed, "again", site, number, copy)
            self.kernel.after(again, arrive)

    # --- asynchronous calls

    def invoke(self, function: str, event: Event, tries: int = 0) -> None:
        """Call a function without waiting; a failed call is repeated as Lambda does."""

        def over(outcome: Any) -> None:
            if isinstance(outcome, InvalidMessageError):
                self.dead.append(json.dumps(event, default=str))
            elif isinstance(outcome, BaseException):
                if tries < LIMITS[function].retries:
                    wait = 60.0 * (tries + 1)
                    self.kernel.after(wait, lambda: self.invoke(function, event, tries + 1))
                else:
                    self.lost += 1

        self.call(function, event, over)

    # --- the queue

    def send(self, text: str, delay: float, *, counted: bool = False) -> None:
        """Put a message into the queue."""
        if not counted:
            self.messages += 1
        site = Site("queue", "wake", "message")
        fault = self.faults.event(site, self.kernel.time, *_ON_THE_WAY)
        number = self.faults.counts[site]
        if fault is Action.LOST:
            self.lost += 1
            return
        if fault is Action.DELAYED:
            delay += between(3, 60, self.faults.seed, "late", site, number)
        for _ in range(_COPIES.get(fault, 1)):
            self._numbers += 1
            visible = self.kernel.time + int(1e6 * delay)
            self.queue[self._numbers] = Record(self._numbers, text, visible)
            self._poll_at(visible)

    def _poll_at(self, visible: int) -> None:
        window = WINDOW_SECONDS
        if visible - self._last_busy > _QUIET * 1e6:
            # A quiet queue may be served late, whatever window was asked for.
            window = between(0.2, _QUIET, self.faults.seed, "quiet", self._numbers)
        self.kernel.at(visible + int(window * 1e6), self._poll)

    def _poll(self) -> None:
        time, back_at = self.kernel.time, self.back_at()
        if time < back_at:
            self.kernel.at(back_at, self._poll)
            return
        ready = [record for record in self.queue.values() if record.visible <= time]
        if not ready:
            return
        self._last_busy = time
        seed = self.faults.seed
        ready.sort(key=lambda record: draw(seed, "order", record.number, record.receives))
        size = _BATCH if draw(seed, "split", ready[0].number, time) < 0.7 else 1
        for start in range(0, len(ready), size):
            self._batch(ready[start : start + size])

    def _batch(self, records: list[Record]) -> None:
        hidden = self.kernel.time + VISIBILITY_SECONDS * 1_000_000
        taken = []
        for record in records:
            if record.receives >= MAX_RECEIVES:
                self.dead.append(record.text)
                self.lost += 1
                del self.queue[record.number]
                continue
            self.redelivered += record.receives > 0
            record.receives += 1
            record.visible = hidden
            taken.append(record)
        if not taken:
            return
        self.kernel.at(hidden + 1_000_000, self._poll)
        event = {"Records": [{"messageId": str(r.number), "body": r.text} for r in taken]}

        def over(outcome: Any) -> None:
            failed = {str(record.number) for record in taken}
            if isinstance(outcome, dict):
                failed = {
                    batch_item_failure["itemIdentifier"]
                    for batch_item_failure in outcome["batchItemFailures"]
                }
            for record in taken:
                if str(record.number) not in failed:
                    self.queue.pop(record.number, None)

        self.call("provision", event, over)
