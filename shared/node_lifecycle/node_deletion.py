"""Removing a node on purpose: delete the object, start the drain."""

from datetime import UTC, datetime
from typing import Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.ports import NodeChange, NodePorts
from shared.timers.timers import start_termination

# Reasons of our own choosing: a pod's do-not-evict annotation holds such a removal.
VOLUNTARY: Final = frozenset(
    {"emptiness", "expiration", "drift", "consolidation", "rebalance", "replacement"}
)


def is_voluntary(node: Node) -> bool:
    """Return whether a node that is being deleted goes because we chose so.

    Deleted by hand it carries no reason: whoever did it wants it gone.
    """
    return node.annotations.get(keys.REMOVAL_REASON, "") in VOLUNTARY


def deadline_of(node: Node) -> datetime | None:
    """Return from when a drain no longer asks, as it stands on the node.

    None when nothing stands there, or nothing that can be read: then pods are asked as long as it
    takes.
    """
    try:
        found = datetime.fromisoformat(node.annotations.get(keys.DRAIN_DEADLINE, ""))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def remove(ports: NodePorts, node: Node, reason: str, deadline: datetime | None = None) -> bool:
    """Delete a node of ours as it was read, and start its termination.

    The finalizer holds the object until the drain is over, so every way to lose a node ends in
    the same state machine. The reason is written on the node first: whoever starts the drain
    finds it there. Of two reasons for one node there is one termination: a reason that is not of
    our choosing is written over one that is, and the earliest deadline stands.

    Args:
        deadline: From when its pods are deleted without being asked: its machine ends soon after.

    Returns:
        False when it changed or went away meanwhile: look again.
    """
    try:
        node = with_reason(ports, node, reason, deadline)
        if node.deletion_at is None:
            ports.cluster.delete_node(node)
    except (ConflictError, NotFoundError):
        return False
    fresh = ports.cluster.node(node.name)
    if fresh is not None and fresh.uid == node.uid:
        start_termination(ports, fresh, ports.clock.now())
    return True


def with_reason(
    ports: NodePorts, node: Node, reason: str, deadline: datetime | None = None
) -> Node:
    """Write onto a node why it goes, and from when its drain no longer asks; return it then.

    Raises:
        ConflictError: If it changed since it was read.
        NotFoundError: If it went away since.
    """
    annotations: dict[str, str | None] = {}
    if node.deletion_at is None or (reason not in VOLUNTARY and is_voluntary(node)):
        annotations[keys.REMOVAL_REASON] = reason
    known = deadline_of(node)
    if deadline is not None and (known is None or deadline < known):
        annotations[keys.DRAIN_DEADLINE] = deadline.isoformat(timespec="seconds")
    if not annotations:
        return node
    return ports.cluster.change_node(node, NodeChange(set_annotations=annotations))
