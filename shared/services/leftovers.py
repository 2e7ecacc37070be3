"""What timers that ended by accident have left on nodes: taken back."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.nodes import Node
from shared.ports import ClusterPorts, NodeChange, TimerKind
from shared.services.looking_first import uncordon
from shared.services.removing import VOLUNTARY

# A timer that acts is heard of more often than this.
_SILENT: Final = timedelta(minutes=3)
_ACTING: Final = (TimerKind.EMPTINESS, TimerKind.EXPIRATION, TimerKind.REPLACEMENT)

Heard = Mapping[tuple[str, str], datetime]


def take_back(ports: ClusterPorts, nodes: Sequence[Node], now: datetime) -> int:
    """Take back what nobody is about to act on any more; return on how many nodes that was.

    A cordon of ours whose timer fell silent goes, and so does the mark of a node that was bought
    to replace others when none of those is being replaced: it would never count as empty.
    """
    marked = [one for one in nodes if one.is_ours and one.deletion_at is None and _is_marked(one)]
    if not marked:
        return 0
    heard = ports.ledger.timers(ports.cluster.name)
    uids = {one.name: one.uid for one in nodes}
    found = 0
    for node in marked:
        if _is_cordoned(node) and not _is_heard(heard, node.uid, _ACTING, now):
            uncordon(ports, node)
            found += 1
        elif keys.REPLACES in node.annotations and _is_old(node, now):
            old = (uids.get(name, "") for name in node.annotations[keys.REPLACES].split(","))
            if not any(_is_heard(heard, uid, (TimerKind.REPLACEMENT,), now) for uid in old):
                found += _unmark(ports, node)
    return found


def _is_marked(node: Node) -> bool:
    return keys.REPLACES in node.annotations or _is_cordoned(node)


def _is_cordoned(node: Node) -> bool:
    return node.unschedulable and node.annotations.get(keys.REMOVAL_REASON) in VOLUNTARY


def _is_old(node: Node, now: datetime) -> bool:
    return node.created_at is not None and now - node.created_at >= _SILENT


def _is_heard(heard: Heard, uid: str, kinds: Sequence[TimerKind], now: datetime) -> bool:
    last = [heard[uid, kind] for kind in kinds if (uid, kind) in heard]
    return bool(last) and now - max(last) < _SILENT


def _unmark(ports: ClusterPorts, node: Node) -> int:
    try:
        ports.cluster.change_node(node, NodeChange(set_annotations={keys.REPLACES: None}))
    except (ConflictError, NotFoundError):
        # Looked at again in a minute.
        return 0
    return 1
