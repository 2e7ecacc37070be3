"""Removes a node: deletes the object and starts the drain."""

from datetime import UTC, datetime
from typing import Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.nodes.timers.timers import start_termination
from shared.ports import NodeChange, NodePorts

# Reasons of voluntary disruption: a pod's do-not-evict annotation blocks such a removal.
VOLUNTARY_REASONS: Final = frozenset(
    {
        "emptiness",
        "expiration",
        "drift",
        "consolidation",
        "rebalance",
        "maintenance",
        "replacement",
    }
)


def is_voluntary(node: Node) -> bool:
    """Return whether a node is being deleted by voluntary disruption.

    A node that a user deletes has no reason: it is drained in spite of do-not-evict.
    """
    return node.annotations.get(keys.REMOVAL_REASON, "") in VOLUNTARY_REASONS


def drain_deadline_of(node: Node) -> datetime | None:
    """Return the node's deadline, after which its drain deletes pods instead of evicting them.

    None if the node has no deadline, or one that cannot be parsed: then pods are evicted without a
    time limit.
    """
    return _time(node, keys.DRAIN_DEADLINE)


def termination_time_of(node: Node) -> datetime | None:
    """Return when a node that is being deleted ends, whatever runs on it; None for no such time."""
    return _time(node, keys.TERMINATION_TIMESTAMP)


def _time(node: Node, annotation: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(node.annotations.get(annotation, ""))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def remove_node(
    ports: NodePorts, node: Node, reason: str, deadline: datetime | None = None
) -> bool:
    """Delete one of Dovetail's nodes as it was read, and start its termination.

    The finalizer keeps the object until the drain is over, so every deletion ends in the same state
    machine. The reason is written on the node first, for the drain. Two reasons for one node have
    one termination: an involuntary reason replaces a voluntary one, and the earliest deadline
    counts.

    Args:
        deadline: From when its pods are deleted instead of evicted, because its instance ends soon
            after.

    Returns:
        False if the node changed or was deleted meanwhile: read it again.
    """
    try:
        node = with_removal_reason(ports, node, reason, deadline)
        if node.deletion_at is None:
            ports.cluster.delete_node(node)
    except (ConflictError, NotFoundError):
        return False
    fresh = ports.cluster.node(node.name)
    if fresh is not None and fresh.uid == node.uid:
        start_termination(ports, fresh)
    return True


def with_removal_reason(
    ports: NodePorts, node: Node, reason: str, deadline: datetime | None = None
) -> Node:
    """Annotate a node with its removal reason and its drain deadline; return the changed node.

    Raises:
        ConflictError: If it changed since it was read.
        NotFoundError: If it was deleted since.
    """
    annotations: dict[str, str | None] = {}
    if node.deletion_at is None or (reason not in VOLUNTARY_REASONS and is_voluntary(node)):
        annotations[keys.REMOVAL_REASON] = reason
    known = drain_deadline_of(node)
    if deadline is not None and (known is None or deadline < known):
        annotations[keys.DRAIN_DEADLINE] = deadline.isoformat(timespec="seconds")
    if not annotations:
        return node
    return ports.cluster.change_node(node, NodeChange(set_annotations=annotations))
