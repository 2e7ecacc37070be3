"""Which pods may be bound to a node before it is ready."""

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint, first_untolerated
from shared.scheduling.binding import binds_early


def may_bind(pod: Pod, node: Node) -> bool:
    """Return whether a pod may be bound before the node is ready: safe, and no startup taint.

    On bare metal none may: the pods would be deleted as not ready before the kubelet joins.
    """
    if node.is_bare_metal or binds_early(pod):
        return False
    tolerations = pod.scheduling.tolerations
    return (
        first_untolerated((taint for taint in node.taints if not _is_starting(taint)), tolerations)
        is None
    )


def _is_starting(taint: Taint) -> bool:
    """Return whether a taint goes while a node starts, and evicts no pod until then."""
    evicts = taint.key in keys.CLOSING_TAINTS and taint.effect == Effect.NO_EXECUTE
    return keys.is_ephemeral(taint.key) and not evicts
