"""Which Events of a cluster were recorded lately: marks of them in a memo of the ledger."""

from datetime import datetime, timedelta
from typing import Final

from shared.model.digest import digests_of
from shared.model.memo import Memo
from shared.ports import NodeLedger

_RECORDED: Final = "recorded"
_KEEP: Final = timedelta(minutes=10)
# A memo holds less than 400 KB.
_MOST_MARKS: Final = 25_000


def recently_recorded(ledger: NodeLedger, cluster: str, now: datetime) -> frozenset[str]:
    """Return the marks of the Events that were recorded in the last minutes."""
    return _recorded(ledger, cluster, now)[1]


def note_recorded(ledger: NodeLedger, cluster: str, marks: frozenset[str], now: datetime) -> None:
    """Add marks of Events; after some minutes all are forgotten. Of very many some are left out."""
    since, known = _recorded(ledger, cluster, now)
    kept = "".join(sorted(known | marks)[:_MOST_MARKS])
    memo = Memo(name=_RECORDED, value={"since": since.isoformat(), "marks": kept})
    ledger.put_memo(cluster, memo, since + _KEEP)


def forget_recorded(ledger: NodeLedger, cluster: str) -> None:
    """Forget all marks: each Event may be recorded again."""
    ledger.drop_memo(cluster, _RECORDED)


def _recorded(ledger: NodeLedger, cluster: str, now: datetime) -> tuple[datetime, frozenset[str]]:
    """Return since when marks are gathered, and the marks."""
    value = ledger.memo(cluster, _RECORDED).value
    if not value or now >= datetime.fromisoformat(value["since"]) + _KEEP:
        return now, frozenset()
    return datetime.fromisoformat(value["since"]), digests_of(value["marks"])
