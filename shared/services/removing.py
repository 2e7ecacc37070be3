"""Removing a node on purpose: delete the object, start the drain."""

from typing import Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.nodes import Node
from shared.ports import ClusterPorts, NodeChange
from shared.services.timers import start_termination

# Reasons of our own choosing: a pod's do-not-evict annotation holds such a removal.
VOLUNTARY: Final = frozenset({"emptiness", "expiration"})


def is_voluntary(node: Node) -> bool:
    """Return whether a node that is being deleted goes because we chose so.

    Deleted by hand it carries no reason: whoever did it wants it gone.
    """
    return node.annotations.get(keys.REMOVAL_REASON, "") in VOLUNTARY


def remove(ports: ClusterPorts, node: Node, reason: str) -> bool:
    """Delete a node of ours as it was read, and start its termination.

    The finalizer holds the object until the drain is over, so every way to lose a node ends in
    the same state machine. The reason is written on the node first: whoever starts the drain
    finds it there.

    Returns:
        False when it changed or went away meanwhile: look again.
    """
    try:
        node = ports.cluster.change_node(
            node, NodeChange(set_annotations={keys.REMOVAL_REASON: reason})
        )
        ports.cluster.delete_node(node)
    except (ConflictError, NotFoundError):
        return False
    fresh = ports.cluster.node(node.name)
    if fresh is not None and fresh.uid == node.uid:
        start_termination(ports, fresh, ports.clock.now())
    return True
