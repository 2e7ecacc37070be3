"""Changes a Node that other controllers write to at the same time.

The node lifecycle controller and the cloud controller write taints to a Node when it is cordoned or
its health changes, so a conflict is normal and not an error.
"""

from collections.abc import Callable
from typing import Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.ports import NodeChange, NodePorts

_ATTEMPTS: Final = 4


def change_node(
    ports: NodePorts, node: Node, change: NodeChange | Callable[[Node], NodeChange | None]
) -> Node:
    """Change a Node and return it; on a conflict it is read again and the change is repeated.

    Args:
        change: The change, or a function that returns it for the Node as read: None for no change.

    Raises:
        ConflictError: If it was written to during each of four attempts, or has lost the label of
            its owner.
        NotFoundError: If it is gone, or another Node has its name.
    """
    left = _ATTEMPTS
    while (wanted := change if isinstance(change, NodeChange) else change(node)) is not None:
        _refuse_disowned(node)
        left -= 1
        try:
            return ports.cluster.change_node(node, wanted)
        except ConflictError:
            if not left:
                raise
            node = read_again(ports, node)
    return node


def read_again(ports: NodePorts, node: Node) -> Node:
    """Return the Node as it is now.

    Raises:
        ConflictError: If it has lost the label of its owner.
        NotFoundError: If it is gone, or another Node has its name.
    """
    fresh = ports.cluster.node(node.name)
    if fresh is None or fresh.uid != node.uid:
        raise NotFoundError(f"node {node.name} is gone")
    _refuse_disowned(fresh)
    return fresh


def cordon_for_removal(node: Node) -> NodeChange | None:
    """Return the change that keeps new pods and load balancers away; None if it is made already."""
    if node.unschedulable and keys.EXCLUDE_FROM_LOAD_BALANCERS in node.labels:
        return None
    return NodeChange(unschedulable=True, set_labels={keys.EXCLUDE_FROM_LOAD_BALANCERS: "dovetail"})


def _refuse_disowned(node: Node) -> None:
    """Raise if a Node has lost its owner's label: it is not changed until sweep restores the label.

    Raises:
        ConflictError: If it has.
    """
    if not node.provisioner:
        raise ConflictError(f"node {node.name} has lost the label of its owner")
