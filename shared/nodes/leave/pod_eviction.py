"""Evicts and deletes the pods of a node that is removed.

No kubelet ends the pods of an instance that no longer runs, so they would stay "Running" and ready
until Kubernetes collects them 40 to 60 seconds after their Node is gone. No pod is deleted by force
while EC2 still shuts an instance down: its kubelet runs pods until the end, and a pod of a
StatefulSet would run twice.

Source: gcOrphaned in
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/podgc/gc_controller.go and
https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ (2026-11).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from shared.disruption.drain import DrainStep, grace_left
from shared.disruption.eviction_blockers import protecting_budgets
from shared.model import labels as keys
from shared.model.dollars_and_counts import first_names
from shared.model.errors import (
    AutoscalerError,
    CertificateError,
    EvictionRefusedError,
    PermanentError,
    RetryableError,
)
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.nodes.events.node_events import event_on
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.node_editor import change_node, cordon_for_removal
from shared.ports import NodeChange, NodePorts, Severity

# Characters of an error that an Event repeats.
_LONGEST_REASON: Final = 200
_REFUSED: Final = "DeletionRefused"
_OUT_OF_SERVICE: Final = Taint(
    key=keys.OUT_OF_SERVICE_TAINT, value="nodeshutdown", effect=Effect.NO_EXECUTE
)


class EvictionResults(Struct, frozen=True, kw_only=True):
    """The API server's answer for each pod that was deleted or evicted.

    Attributes:
        leaving: Pods that are being deleted now.
        refused: Pods that may not be removed, with the reason: budgets, or a permanent refusal.
        failed: Pods for which the same call may succeed later, with its error.
    """

    leaving: tuple[Pod, ...]
    refused: Mapping[Pod, str]
    failed: Mapping[Pod, RetryableError]

    @property
    def staying(self) -> dict[Pod, str]:
        """Pods that are not removed now, with the reason."""
        return {**self.refused, **{pod: _text_of(error) for pod, error in self.failed.items()}}

    def raise_if_all_failed(self) -> None:
        """Raise the first error if the call failed for every pod."""
        if self.failed and not self.leaving and not self.refused:
            raise next(iter(self.failed.values()))


def evict_pods(
    ports: NodePorts, step: DrainStep, ends_at: datetime | None, now: datetime
) -> EvictionResults:
    """Delete and evict the pods of a step; a failure of one pod must not stop the others.

    Deletions come first and in parallel: these pods have little time left, and a call whose
    admission webhook hangs takes many seconds.

    Args:
        ends_at: When the node ends, whatever runs on it; None if it ends once it is drained.

    Raises:
        CertificateError: If the server's certificate is not valid for it.
        RetryableError: If an eviction was refused and the PodDisruptionBudgets cannot be read.
    """

    def delete(pod: Pod) -> None:
        ports.cluster.delete_pod(pod, None if ends_at is None else grace_left(pod, ends_at, now))

    deleted = ports.executor.each(lambda pod: _error_of(delete, pod), step.delete)
    answers = dict(zip(step.delete, deleted, strict=True))
    answers |= {pod: _error_of(ports.cluster.evict, pod) for pod in step.evict}
    errors = {pod: error for pod, error in answers.items() if error is not None}
    protected = [pod for pod, error in errors.items() if isinstance(error, EvictionRefusedError)]
    failed = {
        pod: error
        for pod, error in errors.items()
        if isinstance(error, RetryableError) and pod not in protected
    }
    refused = {pod: _text_of(error) for pod, error in errors.items() if pod not in failed}
    return EvictionResults(
        leaving=tuple(pod for pod in answers if pod not in errors),
        refused={**refused, **_budgets_of(ports, protected)},
        failed=failed,
    )


def force_delete_pods(ports: NodePorts, node: Node) -> bool:
    """Delete the pods of workloads from a Node whose instance is terminated or stopped.

    The Node is cordoned first, so that no pod is scheduled there again. If volumes are attached it
    gets the out-of-service taint, which lets Kubernetes detach them at once instead of after six
    minutes. Pods of DaemonSets stay until the Node is gone: their controllers would create them
    again.

    Returns:
        Whether pods or volumes are left: then the Node must stay, too.

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
    record_refused_deletions(ports, node, refused)
    if gone := {pod.uid for pod in pods if pod not in refused}:
        text = f"its instance does not run: deleted {len(gone)} pods without a grace period"
        event = event_on(node, "PodsForceDeleted", text, severity=Severity.WARNING)
        EventRecorder(ports).record([event])
    left = any(pod.uid in gone for pod in cluster.pods_on(node.name))
    return bool(attached or refused) or left


def record_refused_deletions(ports: NodePorts, node: Node, refused: Mapping[Pod, str]) -> None:
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
    """Delete pods without a grace period; return the pods whose deletion is refused, with why."""
    refused = {}
    for pod in pods:
        try:
            ports.cluster.force_delete_pod(pod)
        except CertificateError:
            raise
        except PermanentError as error:
            refused[pod] = _text_of(error)
    return refused


def _error_of(leave: Callable[[Pod], None], pod: Pod) -> AutoscalerError | None:
    """Delete or evict a pod with `leave`; return the error, None if it succeeds."""
    try:
        leave(pod)
    except CertificateError:
        raise
    except AutoscalerError as error:
        return error
    return None


def _budgets_of(ports: NodePorts, refused: Sequence[Pod]) -> dict[Pod, str]:
    """Return a text that names the budgets that protect each pod."""
    budgets = ports.cluster.disruption_budgets() if refused else ()
    return {pod: protecting_budgets(pod, budgets) for pod in refused}


def _text_of(error: AutoscalerError) -> str:
    return str(error)[:_LONGEST_REASON]


def delete_orphaned_pods(ports: NodePorts, node_name: str) -> None:
    """Delete the pods that are bound to the name of a Node that is gone with its instance.

    A new Node may take the name, and its kubelet would run these pods again.
    """
    pods = ports.cluster.pods_on(node_name)
    # Read after the pods: none of them can belong to a Node that was created meanwhile.
    if pods and ports.cluster.node(node_name) is None:
        _force_delete(ports, pods)


def _out_of_service(node: Node) -> NodeChange | None:
    if any(taint.key == keys.OUT_OF_SERVICE_TAINT for taint in node.taints):
        return None
    return NodeChange(add_taints=(_OUT_OF_SERVICE,))
