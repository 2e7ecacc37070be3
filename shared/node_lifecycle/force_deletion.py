"""Pods that are left on a Node whose machine does not run any more.

No kubelet ends them, so they would stay "Running" and ready until Kubernetes collects them 40 to
60 seconds after their Node is gone. Nothing here may be called while EC2 still shuts a machine
down: its kubelet runs pods until the end, and a StatefulSet's pod would run twice.

Source: gcOrphaned in
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/podgc/gc_controller.go and
https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ (2026-11).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.events.node_events import event_on, first_names
from shared.events.recorder import EventRecorder
from shared.model import labels as keys
from shared.model.errors import CertificateError, PermanentError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.node_lifecycle.node_editor import change_node, cordon_for_removal
from shared.ports import NodeChange, NodePorts, Severity

# Characters of an error that an Event repeats.
LONGEST_REASON: Final = 200
_REFUSED: Final = "DeletionRefused"
_OUT_OF_SERVICE: Final = Taint(
    key=keys.OUT_OF_SERVICE_TAINT, value="nodeshutdown", effect=Effect.NO_EXECUTE
)


def free_node(ports: NodePorts, node: Node) -> bool:
    """Delete the pods of workloads from a Node whose machine is terminated or stopped.

    The Node is cordoned first, so that none is placed there again. With volumes attached it gets
    the out-of-service taint, which lets Kubernetes detach them at once instead of after six
    minutes. Pods of DaemonSets stay until the Node is gone: their controllers would make them
    anew.

    Returns:
        Whether pods or volumes are still there: the Node must stay, too.

    Raises:
        ConflictError: If others write to the Node all the time.
        NotFoundError: If the Node is gone.
    """
    cluster = ports.cluster
    attached = cluster.volume_attachments(node.name)
    change_node(ports, node, cordon_for_removal)
    if attached:
        change_node(ports, node, _out_of_service)
    pods = [pod for pod in cluster.pods_on(node.name) if not (pod.is_daemon or pod.is_static)]
    if not pods:
        return bool(attached)
    refused = _force_delete(ports, pods)
    tell_refused(ports, node, refused)
    if gone := {pod.uid for pod in pods if pod not in refused}:
        text = f"its machine does not run: deleted {len(gone)} pods without a grace period"
        event = event_on(node, "PodsForceDeleted", text, severity=Severity.WARNING)
        EventRecorder(ports).record([event])
    left = any(pod.uid in gone for pod in cluster.pods_on(node.name))
    return bool(attached or refused) or left


def tell_refused(ports: NodePorts, node: Node, refused: Mapping[Pod, str]) -> None:
    """Record on a Node and on its pods that the API server refuses to delete these pods."""
    if not refused:
        return
    who = first_names(f"{pod.key} ({why})" for pod, why in refused.items())
    change_node(ports, node, NodeChange(set_annotations={keys.DELETION_REFUSED: who}))
    text = f"the API server refuses to delete {who}; the node does not wait for them"
    on_pods = [
        event_on(pod, _REFUSED, f"node {node.name} is removed; the API server refuses: {why}")
        for pod, why in refused.items()
    ]
    EventRecorder(ports).record([event_on(node, _REFUSED, text), *on_pods])


def _force_delete(ports: NodePorts, pods: Iterable[Pod]) -> dict[Pod, str]:
    """Delete pods without a grace period; return those whose deletion is refused, with why."""
    refused = {}
    for pod in pods:
        try:
            ports.cluster.force_delete_pod(pod)
        except CertificateError:
            raise
        except PermanentError as error:
            refused[pod] = str(error)[:LONGEST_REASON]
    return refused


def delete_orphaned_pods(ports: NodePorts, node_name: str) -> None:
    """Delete the pods that are bound to the name of a Node that is gone, and its machine with it.

    A new Node may take the name, and its kubelet would run these pods again.
    """
    pods = ports.cluster.pods_on(node_name)
    # Read after the pods: none of them can be of a Node that was made meanwhile.
    if pods and ports.cluster.node(node_name) is None:
        _force_delete(ports, pods)


def _out_of_service(node: Node) -> NodeChange | None:
    if any(taint.key == keys.OUT_OF_SERVICE_TAINT for taint in node.taints):
        return None
    return NodeChange(add_taints=(_OUT_OF_SERVICE,))
