"""When timers and the forwarder of a cluster were last seen, each in a memo of the ledger."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from shared.model.memo import Memo
from shared.ports import NodeLedger, TimerKind

_TIMER: Final = "timer#"
_FORWARDER: Final = "forwarder"
# The timer of a replacement is heard of more often than this.
_HEARD: Final = timedelta(minutes=3)
_KEEP_TIMER: Final = timedelta(days=400)
_KEEP_FORWARDER: Final = timedelta(days=30)


def note_timer(ledger: NodeLedger, cluster: str, node_uid: str, kind: str, at: datetime) -> None:
    """Write down that a timer of that kind runs for a node and was last seen at `at`."""
    value = {"uid": node_uid, "kind": str(kind), "at": at.isoformat()}
    ledger.put_memo(cluster, Memo(name=_name(node_uid, kind), value=value), at + _KEEP_TIMER)


def running_timers(ledger: NodeLedger, cluster: str) -> Mapping[tuple[str, str], datetime]:
    """Return when each timer, by (node uid, kind), was last seen."""
    return {
        (memo.value["uid"], memo.value["kind"]): datetime.fromisoformat(memo.value["at"])
        for memo in ledger.memos(cluster, _TIMER)
    }


def changes_under_way(ledger: NodeLedger, cluster: str, now: datetime) -> frozenset[str]:
    """Return the uids of nodes that are being replaced, from when that was begun."""
    return frozenset(
        uid
        for (uid, kind), last in running_timers(ledger, cluster).items()
        if kind == TimerKind.REPLACEMENT and now - last <= _HEARD
    )


def timer_seen(ledger: NodeLedger, cluster: str, node_uid: str, kind: str) -> datetime | None:
    """Return when one timer was last seen, None when none runs: one row is read."""
    at = ledger.memo(cluster, _name(node_uid, kind)).value.get("at")
    return datetime.fromisoformat(at) if at else None


def drop_timer(ledger: NodeLedger, cluster: str, node_uid: str, kind: str) -> None:
    """Remove what is written of a timer."""
    ledger.drop_memo(cluster, _name(node_uid, kind))


def note_forwarder(ledger: NodeLedger, cluster: str, at: datetime) -> None:
    """Write down when the cluster's forwarder last sent a heartbeat; an older one is ignored."""
    known = forwarder_seen(ledger, cluster)
    if known is None or known < at:
        memo = Memo(name=_FORWARDER, value={"at": at.isoformat()})
        ledger.put_memo(cluster, memo, at + _KEEP_FORWARDER)


def forwarder_seen(ledger: NodeLedger, cluster: str) -> datetime | None:
    """Return the time of the forwarder's last heartbeat, None when there was none."""
    at = ledger.memo(cluster, _FORWARDER).value.get("at")
    return datetime.fromisoformat(at) if at else None


def _name(node_uid: str, kind: str) -> str:
    return f"{_TIMER}{node_uid}#{kind}"
