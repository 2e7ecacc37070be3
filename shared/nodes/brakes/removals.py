"""Whether nodes may be removed voluntarily: what timers know of brakes and other autoscalers."""

from datetime import datetime, timedelta
from typing import Final

from shared.model.note import Note
from shared.ports import ClusterPorts, NodePorts, Rival

# In the ledger: when another autoscaler was last seen. Sweep checks each minute.
_RIVAL_SEEN: Final = "rival-seen"
_SEEN_FOR: Final = timedelta(minutes=3)


def save_rivals(ports: ClusterPorts, rivals: tuple[Rival, ...]) -> None:
    """Save for timers, which may not read Leases, that another autoscaler runs now."""
    if rivals:
        now = ports.clock.now()
        note = Note(name=_RIVAL_SEEN, value={"at": now.isoformat()})
        ports.ledger.put_note(ports.cluster.name, note, now + _SEEN_FOR)


def removals_blocked(ports: NodePorts) -> bool:
    """Return whether a brake or another autoscaler forbids voluntary removals."""
    if ports.brakes.forbids_changes:
        return True
    at = ports.ledger.note(ports.cluster.name, _RIVAL_SEEN).value.get("at")
    return at is not None and ports.clock.now() - datetime.fromisoformat(at) <= _SEEN_FOR
