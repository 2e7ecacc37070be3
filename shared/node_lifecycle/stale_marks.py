"""Removes what timers that ended by accident have left on nodes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.node_lifecycle.node_deletion import VOLUNTARY
from shared.node_lifecycle.node_editor import change_node
from shared.node_lifecycle.voluntary_removal import uncordon
from shared.ports import NodeChange, NodePorts, TimerKind
from shared.timers.heartbeats import running_timers, timer_seen

# A timer that acts is heard of more often than this.
_SILENT: Final = timedelta(minutes=3)
_ACTING: Final = (TimerKind.EMPTINESS, TimerKind.EXPIRATION, TimerKind.REPLACEMENT)

_UNMARK: Final = NodeChange(set_annotations={keys.REPLACES: None})

Heard = Mapping[tuple[str, str], datetime]


def take_back(ports: NodePorts, nodes: Sequence[Node], now: datetime) -> int:
    """Remove marks that no timer acts on any more; return from how many nodes.

    Such a mark is a cordon of Dovetail's whose timer fell silent, or the mark of a node launched
    to replace others when none of those is being replaced: it would never count as empty.
    """
    marked = [
        node for node in nodes if node.is_ours and node.deletion_at is None and _is_marked(node)
    ]
    if not marked:
        return 0
    heard = running_timers(ports.ledger, ports.cluster.name)
    uids = {node.name: node.uid for node in nodes}
    found = 0
    for node in marked:
        if _is_cordoned(node) and not _is_heard(heard, node.uid, _ACTING, now):
            uncordon(ports, node)
            found += 1
        elif _is_replacement(node, now) and not _is_awaited(
            heard, (uids.get(name, "") for name in _replaced(node)), now
        ):
            found += _unmark(ports, node)
    return found


def unmarked(ports: NodePorts, node: Node, now: datetime) -> Node:
    """Return a node without its mark as a replacement, when none of those is being replaced.

    This serves one node that is reported empty; sweep does it for all nodes.

    Raises:
        RetryableError: If it was written to meanwhile.
    """
    if not node.is_ours or node.deletion_at is not None or not _is_replacement(node, now):
        return node
    old = [ports.cluster.node(name) for name in _replaced(node)]
    uids = [node.uid for node in old if node is not None]
    heard = {
        (uid, str(TimerKind.REPLACEMENT)): last
        for uid in uids
        if (last := timer_seen(ports.ledger, ports.cluster.name, uid, TimerKind.REPLACEMENT))
    }
    if _is_awaited(heard, uids, now):
        return node
    return change_node(ports, node, _UNMARK)


def _is_marked(node: Node) -> bool:
    return keys.REPLACES in node.annotations or _is_cordoned(node)


def _is_cordoned(node: Node) -> bool:
    return node.unschedulable and node.annotations.get(keys.REMOVAL_REASON) in VOLUNTARY


def _is_replacement(node: Node, now: datetime) -> bool:
    """Return whether a node is marked, and is so old that its mark may be stale."""
    old = node.created_at is not None and now - node.created_at >= _SILENT
    return old and keys.REPLACES in node.annotations


def _replaced(node: Node) -> Sequence[str]:
    return node.annotations[keys.REPLACES].split(",")


def _is_awaited(heard: Heard, old: Iterable[str], now: datetime) -> bool:
    return any(_is_heard(heard, uid, (TimerKind.REPLACEMENT,), now) for uid in old)


def _is_heard(heard: Heard, uid: str, kinds: Sequence[TimerKind], now: datetime) -> bool:
    last = [heard[uid, kind] for kind in kinds if (uid, kind) in heard]
    return bool(last) and now - max(last) < _SILENT


def _unmark(ports: NodePorts, node: Node) -> int:
    try:
        change_node(ports, node, _UNMARK)
    except (ConflictError, NotFoundError):
        # Looked at again in a minute.
        return 0
    return 1
