"""Which Events of a cluster were recorded lately: their digests in a note of the ledger."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.model.digest import digests_of
from shared.model.note import Note
from shared.ports import NodeLedger

# A note holds less than 400 KB.
_MOST_MARKS: Final = 25_000


class Memory(Struct, frozen=True, kw_only=True):
    """How long an Event is remembered, and in which note."""

    note: str
    span: timedelta


TEN_MINUTES: Final = Memory(note="recorded", span=timedelta(minutes=10))
# For what is so of many nodes for long.
ONE_HOUR: Final = Memory(note="recorded-this-hour", span=timedelta(hours=1))


def recently_recorded(
    ledger: NodeLedger, cluster: str, now: datetime, memory: Memory = TEN_MINUTES
) -> frozenset[str]:
    """Return the digests (marks) of the Events that were recorded lately."""
    return _recorded(ledger, cluster, now, memory)[1]


def save_recorded(
    ledger: NodeLedger,
    cluster: str,
    marks: frozenset[str],
    now: datetime,
    memory: Memory = TEN_MINUTES,
) -> None:
    """Add marks of Events, 25,000 at most; all are dropped a span after the first."""
    since, known = _recorded(ledger, cluster, now, memory)
    kept = "".join(sorted(known | marks)[:_MOST_MARKS])
    note = Note(name=memory.note, value={"since": since.isoformat(), "marks": kept})
    ledger.put_note(cluster, note, since + memory.span)


def drop_recorded(ledger: NodeLedger, cluster: str) -> None:
    """Drop the marks of the last ten minutes: each Event may be recorded again."""
    ledger.drop_note(cluster, TEN_MINUTES.note)


def _recorded(
    ledger: NodeLedger, cluster: str, now: datetime, memory: Memory
) -> tuple[datetime, frozenset[str]]:
    """Return since when marks are collected, and the marks."""
    value = ledger.note(cluster, memory.note).value
    if not value or now >= datetime.fromisoformat(value["since"]) + memory.span:
        return now, frozenset()
    return datetime.fromisoformat(value["since"]), digests_of(value["marks"])
