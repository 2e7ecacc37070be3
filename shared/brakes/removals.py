"""Whether nodes may be removed by choice: what timers know of brakes and of other autoscalers."""

from datetime import datetime, timedelta
from typing import Final

from shared.model.memo import Memo
from shared.ports import ClusterPorts, NodePorts, Rival

# In the ledger: when another autoscaler was last seen. Sweep looks each minute.
_SEEN: Final = "rival-seen"
_SEEN_FOR: Final = timedelta(minutes=3)


def note_rivals(ports: ClusterPorts, rivals: tuple[Rival, ...]) -> None:
    """Write down for timers, which may read no leases, that another autoscaler runs now."""
    if rivals:
        now = ports.clock.now()
        memo = Memo(name=_SEEN, value={"at": now.isoformat()})
        ports.ledger.put_memo(ports.cluster.name, memo, now + _SEEN_FOR)


def holds_removals(ports: NodePorts) -> bool:
    """Return whether no node may be removed by choice: by a brake, or beside another autoscaler."""
    if ports.brakes.holds:
        return True
    at = ports.ledger.memo(ports.cluster.name, _SEEN).value.get("at")
    return at is not None and ports.clock.now() - datetime.fromisoformat(at) <= _SEEN_FOR
