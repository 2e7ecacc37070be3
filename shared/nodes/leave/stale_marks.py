"""Removes the marks that timers left on nodes when they ended by accident."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.nodes.leave.node_deletion import VOLUNTARY_REASONS
from shared.nodes.leave.voluntary_removal import uncordon
from shared.nodes.node_editor import change_node
from shared.nodes.timers.heartbeats import last_heartbeat
from shared.ports import NodeChange, NodePorts, TimerKind

# A timer that acts writes its heartbeat more often than this.
_SILENT: Final = timedelta(minutes=3)
_ACTING: Final = (TimerKind.EMPTINESS, TimerKind.EXPIRATION, TimerKind.REPLACEMENT)

_UNMARK: Final = NodeChange(set_annotations={keys.REPLACES: None})

Heartbeats = Mapping[tuple[str, str], datetime]


def remove_stale_marks(
    ports: NodePorts, node: Node, uids: Mapping[str, str], heartbeats: Heartbeats, now: datetime
) -> int:
    """Remove the mark that a timer left on a node; return 1 if the node had one, else 0.

    Such a mark is a cordon of Dovetail whose timer has no heartbeat, or the mark of a node launched
    to replace others when none of those is being replaced: the node would never count as empty.

    Args:
        uids: The UIDs of the cluster's nodes, by name.
        heartbeats: When each timer last wrote its heartbeat, by node UID and kind.
    """
    if not node.is_ours or node.deletion_at is not None:
        return 0
    if _is_cordoned(node) and not _has_heartbeat(heartbeats, node.uid, _ACTING, now):
        uncordon(ports, node)
        return 1
    if not _is_replacement(node, now):
        return 0
    old = (uids.get(name, "") for name in _replaced(node))
    return 0 if _is_awaited(heartbeats, old, now) else _remove_mark(ports, node)


def without_stale_marks(ports: NodePorts, node: Node, now: datetime) -> Node:
    """Return a node without its mark as a replacement if no node is being replaced by it.

    This is for one node that is reported empty; sweep does it for all nodes.

    Raises:
        RetryableError: If it was written to meanwhile.
    """
    if not node.is_ours or node.deletion_at is not None or not _is_replacement(node, now):
        return node
    old = [ports.cluster.node(name) for name in _replaced(node)]
    uids = [node.uid for node in old if node is not None]
    heartbeats = {
        (uid, str(TimerKind.REPLACEMENT)): last
        for uid in uids
        if (last := last_heartbeat(ports.ledger, ports.cluster.name, uid, TimerKind.REPLACEMENT))
    }
    if _is_awaited(heartbeats, uids, now):
        return node
    return change_node(ports, node, _UNMARK)


def _is_cordoned(node: Node) -> bool:
    return node.unschedulable and node.annotations.get(keys.REMOVAL_REASON) in VOLUNTARY_REASONS


def _is_replacement(node: Node, now: datetime) -> bool:
    """Return whether a node is marked and is so old that its mark may be stale."""
    old = node.created_at is not None and now - node.created_at >= _SILENT
    return old and keys.REPLACES in node.annotations


def _replaced(node: Node) -> Sequence[str]:
    return node.annotations[keys.REPLACES].split(",")


def _is_awaited(heartbeats: Heartbeats, old: Iterable[str], now: datetime) -> bool:
    return any(_has_heartbeat(heartbeats, uid, (TimerKind.REPLACEMENT,), now) for uid in old)


def _has_heartbeat(
    heartbeats: Heartbeats, uid: str, kinds: Sequence[TimerKind], now: datetime
) -> bool:
    last = [heartbeats[uid, kind] for kind in kinds if (uid, kind) in heartbeats]
    return bool(last) and now - max(last) < _SILENT


def _remove_mark(ports: NodePorts, node: Node) -> int:
    try:
        change_node(ports, node, _UNMARK)
    except (ConflictError, NotFoundError):
        # Sweep tries again in a minute.
        return 0
    return 1
