"""Which Events of a cluster were recorded lately: their digests in a note of the ledger."""

from datetime import datetime, timedelta
from typing import Final

from shared.model.digest import digests_of
from shared.model.note import Note
from shared.ports import NodeLedger

_RECORDED: Final = "recorded"
_KEEP: Final = timedelta(minutes=10)
# A note holds less than 400 KB.
_MOST_MARKS: Final = 25_000


def recently_recorded(ledger: NodeLedger, cluster: str, now: datetime) -> frozenset[str]:
    """Return the digests (marks) of the Events that were recorded in the last ten minutes."""
    return _recorded(ledger, cluster, now)[1]


def save_recorded(ledger: NodeLedger, cluster: str, marks: frozenset[str], now: datetime) -> None:
    """Add marks of Events, 25,000 at most; all are dropped ten minutes after the first."""
    since, known = _recorded(ledger, cluster, now)
    kept = "".join(sorted(known | marks)[:_MOST_MARKS])
    note = Note(name=_RECORDED, value={"since": since.isoformat(), "marks": kept})
    ledger.put_note(cluster, note, since + _KEEP)


def drop_recorded(ledger: NodeLedger, cluster: str) -> None:
    """Drop all marks: each Event may be recorded again."""
    ledger.drop_note(cluster, _RECORDED)


def _recorded(ledger: NodeLedger, cluster: str, now: datetime) -> tuple[datetime, frozenset[str]]:
    """Return since when marks are collected, and the marks."""
    value = ledger.note(cluster, _RECORDED).value
    if not value or now >= datetime.fromisoformat(value["since"]) + _KEEP:
        return now, frozenset()
    return datetime.fromisoformat(value["since"]), digests_of(value["marks"])
