"""What came of each launch group, kept in the ledger when its intent is closed."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.model.codec import from_plain, to_plain
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import FleetError, LaunchIntent, Slot
from shared.model.note import Note
from shared.ports import ClusterPorts, NodeLedger

_PREFIX: Final = "launch#"
# As long as decisions are looked at.
_KEEP: Final = timedelta(days=30)
_MOST_ERRORS: Final = 5
_MOST_LETTERS: Final = 500


class LaunchedKind(Struct, frozen=True, kw_only=True):
    """Instances of one offering that EC2 launched; the price is that of one."""

    offering: OfferingKey
    price_micros_per_hour: int
    count: int


class RefusedLaunch(Struct, frozen=True, kw_only=True):
    """An error of EC2, its text cut at 500 letters."""

    code: str
    message: str


class LaunchResult(Struct, frozen=True, kw_only=True):
    """What came of one launch group.

    Attributes:
        at: When its intent was closed.
        planned: The nodes that were requested.
        launched: The instances that became their slots, most first.
        refused: The last errors of EC2, each once, at most five.
    """

    plan_id: str
    group: int
    provisioner: str
    at: datetime
    planned: int
    launched: tuple[LaunchedKind, ...] = ()
    refused: tuple[RefusedLaunch, ...] = ()


class LaunchResults:
    """Collects what comes of the launch groups of one invocation."""

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._slots: dict[tuple[str, int], dict[int, Slot]] = {}
        self._errors: dict[tuple[str, int], dict[RefusedLaunch, None]] = {}

    def add_slots(self, slots: Iterable[Slot]) -> None:
        """Remember slots that were filled."""
        for slot in slots:
            self._slots.setdefault((slot.plan_id, slot.group), {})[slot.number] = slot

    def add_errors(self, plan_id: str, group: int, errors: Iterable[FleetError]) -> None:
        """Remember errors of EC2."""
        known = self._errors.setdefault((plan_id, group), {})
        for error in errors:
            known[RefusedLaunch(code=error.code, message=error.message[:_MOST_LETTERS])] = None

    def save(self, intent: LaunchIntent) -> None:
        """Save what came of a group whose intent is about to be closed; may be repeated."""
        group = (intent.plan_id, intent.group)
        slots = self._slots.pop(group, {})
        if len(slots) < intent.count:
            # Others may have been filled by an earlier invocation.
            for slot in self._ports.ledger.slots(intent.cluster):
                if (slot.plan_id, slot.group) == group:
                    slots[slot.number] = slot
        now = self._ports.clock.now()
        kinds = Counter((slot.offering, slot.price_micros_per_hour) for slot in slots.values())
        result = LaunchResult(
            plan_id=intent.plan_id,
            group=intent.group,
            provisioner=intent.provisioner,
            at=now,
            planned=intent.count,
            launched=tuple(
                LaunchedKind(offering=offering, price_micros_per_hour=price, count=count)
                for (offering, price), count in kinds.most_common()
            ),
            refused=tuple(self._errors.pop(group, {}))[-_MOST_ERRORS:],
        )
        note = Note(name=f"{_PREFIX}{intent.plan_id}#{intent.group}", value=to_plain(result))
        self._ports.ledger.put_note(intent.cluster, note, now + _KEEP)


def results_of_plan(ledger: NodeLedger, cluster: str, plan_id: str) -> tuple[LaunchResult, ...]:
    """Return what came of the groups of a plan, as far as they are closed; by group."""
    found = [
        from_plain(LaunchResult, note.value)
        for note in ledger.notes(cluster, f"{_PREFIX}{plan_id}#")
    ]
    return tuple(sorted(found, key=lambda result: result.group))
