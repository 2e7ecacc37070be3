"""Pods that are left on a Node whose machine does not run any more.

No kubelet ends them, so they would stay "Running" and ready until Kubernetes collects them 40 to
60 seconds after their Node is gone. Nothing here may be called while EC2 still shuts a machine
down: its kubelet runs pods until the end, and a StatefulSet's pod would run twice.

Source: gcOrphaned in
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/podgc/gc_controller.go and
https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ (2026-11).
"""

from typing import Final

from shared.model import labels as keys
from shared.model.nodes import Node
from shared.model.taints import Effect, Taint
from shared.ports import ClusterPorts, NodeChange, Severity
from shared.services.announcing import Announcer
from shared.services.node_changes import change_node, cordon_for_removal
from shared.services.node_events import event_on

_OUT_OF_SERVICE: Final = Taint(
    key=keys.OUT_OF_SERVICE_TAINT, value="nodeshutdown", effect=Effect.NO_EXECUTE
)


def free_node(ports: ClusterPorts, node: Node) -> bool:
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
    pods = [one for one in cluster.pods_on(node.name) if not (one.is_daemon or one.is_static)]
    if not pods:
        return bool(attached)
    for pod in pods:
        cluster.force_delete_pod(pod)
    text = f"its machine does not run: deleted {len(pods)} pods without a grace period"
    event = event_on(node, "PodsForceDeleted", text, severity=Severity.WARNING)
    Announcer(ports).tell([event])
    gone = {pod.uid for pod in pods}
    return bool(attached) or any(one.uid in gone for one in cluster.pods_on(node.name))


def delete_orphaned_pods(ports: ClusterPorts, node_name: str) -> None:
    """Delete the pods that are bound to the name of a Node that is gone, and its machine with it.

    A new Node may take the name, and its kubelet would run these pods again.
    """
    pods = ports.cluster.pods_on(node_name)
    # Read after the pods: none of them can be of a Node that was made meanwhile.
    if pods and ports.cluster.node(node_name) is None:
        for pod in pods:
            ports.cluster.force_delete_pod(pod)


def _out_of_service(node: Node) -> NodeChange | None:
    if any(taint.key == keys.OUT_OF_SERVICE_TAINT for taint in node.taints):
        return None
    return NodeChange(add_taints=(_OUT_OF_SERVICE,))
