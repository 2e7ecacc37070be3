"""What happens to a node that was initialized once and is no longer Ready."""

from collections.abc import Iterable

from shared.disruption.emptiness import keeps_node
from shared.model import labels as keys
from shared.model.dollars_and_counts import first_names
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner


def unhealthy_outcome(
    node: Node, owner: Provisioner | None, pods: Iterable[Pod], held_back: str = ""
) -> str:
    """Return what happens to a node that stays NotReady, for people.

    Dovetail repairs no node: it removes an empty one, as any other.

    Args:
        owner: None when it no longer exists.
        pods: On the node.
        held_back: Why nothing is removed in the whole cluster, empty if nodes are.
    """
    delete = "delete the Node, and its pods get another"
    if reason := held_back or _kept(node, owner):
        return f"it stays ({reason}): {delete}"
    keeping = sorted(pod.key for pod in pods if keeps_node(node, pod))
    if not keeping:
        return "it is removed as empty"
    return (
        f"it is removed as empty once these pods leave: {first_names(keeping, 1)}; sooner: {delete}"
    )


def _kept(node: Node, owner: Provisioner | None) -> str:
    """Return why a node is not removed when it is empty, an empty text if it is."""
    if owner is None:
        return f"its owner {node.provisioner} is gone"
    if owner.paused or owner.shadow:
        return f"{owner.kind} {owner.name} is {'paused' if owner.paused else 'in shadow mode'}"
    if keys.first_true_annotation(node.annotations, (keys.DO_NOT_DISRUPT,)):
        return f"its annotation {keys.DO_NOT_DISRUPT}"
    if owner.ttl_after_empty is None and not owner.consolidation:
        return f"{owner.kind} {owner.name} has no nodes removed for being empty"
    return ""
