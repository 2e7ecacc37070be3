"""When timers and the forwarder of a cluster last ran, each in a note of the ledger."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from shared.model.note import Note
from shared.ports import NodeLedger, TimerKind

_TIMER: Final = "timer#"
_FORWARDER: Final = "forwarder"
# The timer of a replacement writes its heartbeat more often than this.
_ALIVE_FOR: Final = timedelta(minutes=3)
_KEEP_TIMER: Final = timedelta(days=400)
_KEEP_FORWARDER: Final = timedelta(days=30)


def save_heartbeat(
    ledger: NodeLedger, cluster: str, node_uid: str, kind: str, at: datetime
) -> None:
    """Save that a timer of this kind runs for a node and last ran at `at`."""
    value = {"uid": node_uid, "kind": str(kind), "at": at.isoformat()}
    ledger.put_note(cluster, Note(name=_name(node_uid, kind), value=value), at + _KEEP_TIMER)


def last_heartbeats(ledger: NodeLedger, cluster: str) -> Mapping[tuple[str, str], datetime]:
    """Return the last heartbeat of each timer, by (node UID, kind)."""
    return {
        (note.value["uid"], note.value["kind"]): datetime.fromisoformat(note.value["at"])
        for note in ledger.notes(cluster, _TIMER)
    }


def nodes_being_replaced(ledger: NodeLedger, cluster: str, now: datetime) -> frozenset[str]:
    """Return the UIDs of nodes that are being replaced, from the start of the replacement."""
    return frozenset(
        uid
        for (uid, kind), last in last_heartbeats(ledger, cluster).items()
        if kind == TimerKind.REPLACEMENT and now - last <= _ALIVE_FOR
    )


def last_heartbeat(ledger: NodeLedger, cluster: str, node_uid: str, kind: str) -> datetime | None:
    """Return the last heartbeat of one timer, None if it does not run; reads one row."""
    at = ledger.note(cluster, _name(node_uid, kind)).value.get("at")
    return datetime.fromisoformat(at) if at else None


def drop_heartbeat(ledger: NodeLedger, cluster: str, node_uid: str, kind: str) -> None:
    """Remove the heartbeat of a timer."""
    ledger.drop_note(cluster, _name(node_uid, kind))


def save_forwarder_heartbeat(ledger: NodeLedger, cluster: str, at: datetime) -> None:
    """Save when the cluster's forwarder last sent a heartbeat; an older one is ignored."""
    known = last_forwarder_heartbeat(ledger, cluster)
    if known is None or known < at:
        note = Note(name=_FORWARDER, value={"at": at.isoformat()})
        ledger.put_note(cluster, note, at + _KEEP_FORWARDER)


def last_forwarder_heartbeat(ledger: NodeLedger, cluster: str) -> datetime | None:
    """Return the time of the forwarder's last heartbeat, None if there was none."""
    at = ledger.note(cluster, _FORWARDER).value.get("at")
    return datetime.fromisoformat(at) if at else None


def _name(node_uid: str, kind: str) -> str:
    return f"{_TIMER}{node_uid}#{kind}"
