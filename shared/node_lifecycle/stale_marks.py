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
from shared.timers.heartbeats import timer_seen

# A timer that acts is heard of more often than this.
_SILENT: Final = timedelta(minutes=3)
_ACTING: Final = (TimerKind.EMPTINESS, TimerKind.EXPIRATION, TimerKind.REPLACEMENT)

_UNMARK: Final = NodeChange(set_annotations={keys.REPLACES: None})

Heard = Mapping[tuple[str, str], datetime]


def take_back(
    ports: NodePorts, node: Node, uids: Mapping[str, str], heard: Heard, now: datetime
) -> int:
    """Remove the mark of a node that no timer acts on any more; return 1 if it had one, else 0.

    Such a mark is a cordon of Dovetail's whose timer fell silent, or the mark of a node launched
    to replace others when none of those is being replaced: it would never count as empty.

    Args:
        uids: Of the cluster's nodes, by name.
        heard: When timers were last heard of.
    """
    if not node.is_ours or node.deletion_at is not None:
        return 0
    if _is_cordoned(node) and not _is_heard(heard, node.uid, _ACTING, now):
        uncordon(ports, node)
        return 1
    if not _is_replacement(node, now):
        return 0
    old = (uids.get(name, "") for name in _replaced(node))
    return 0 if _is_awaited(heard, old, now) else _unmark(ports, node)


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
