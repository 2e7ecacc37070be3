"""Taking pods off a node that goes: they are asked to leave, and deleted by force in the end.

No kubelet ends the pods of a machine that does not run any more, so they would stay "Running" and
ready until Kubernetes collects them 40 to 60 seconds after their Node is gone. None is deleted by
force while EC2 still shuts a machine down: its kubelet runs pods until the end, and a StatefulSet's
pod would run twice.

Source: gcOrphaned in
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/podgc/gc_controller.go and
https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ (2026-11).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.disruption.drain import DrainStep, grace_left
from shared.disruption.eviction_blockers import budgets_of
from shared.events.node_events import event_on, first_names
from shared.events.recorder import EventRecorder
from shared.model import labels as keys
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
from shared.node_lifecycle.node_editor import change_node, cordon_for_removal
from shared.ports import NodeChange, NodePorts, Severity

# Characters of an error that an Event repeats.
_LONGEST_REASON: Final = 200
_REFUSED: Final = "DeletionRefused"
_OUT_OF_SERVICE: Final = Taint(
    key=keys.OUT_OF_SERVICE_TAINT, value="nodeshutdown", effect=Effect.NO_EXECUTE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the API server answered for each pod that was asked to leave.

    Attributes:
        leaving: Pods that leave now.
        refused: Pods that may not leave, with what holds them: budgets, or a refusal for good.
        failed: Pods for which the same call may succeed later, with its error.
    """

    leaving: tuple[Pod, ...]
    refused: Mapping[Pod, str]
    failed: Mapping[Pod, RetryableError]

    @property
    def staying(self) -> dict[Pod, str]:
        """Pods that do not leave now, with why."""
        return {**self.refused, **{pod: _text_of(error) for pod, error in self.failed.items()}}

    def raise_if_all_failed(self) -> None:
        """Raise the first error if there was no answer for any pod."""
        if self.failed and not self.leaving and not self.refused:
            raise next(iter(self.failed.values()))


def ask_to_leave(
    ports: NodePorts, step: DrainStep, ends_at: datetime | None, now: datetime
) -> Asked:
    """Delete and evict the pods of a step; what happens for one pod must not keep the others.

    Deletions come first and several at a time: these pods have little time left, and a call whose
    admission webhook hangs takes many seconds.

    Args:
        ends_at: When the node ends, whatever is on it; None for when it is drained.

    Raises:
        CertificateError: If the server's certificate is not valid for it.
        RetryableError: If an eviction was refused and the budgets cannot be read.
    """

    def delete(pod: Pod) -> None:
        ports.cluster.delete_pod(pod, None if ends_at is None else grace_left(pod, ends_at, now))

    deleted = ports.crew.each(lambda pod: _error_of(delete, pod), step.delete)
    answers = dict(zip(step.delete, deleted, strict=True))
    answers |= {pod: _error_of(ports.cluster.evict, pod) for pod in step.evict}
    errors = {pod: error for pod, error in answers.items() if error is not None}
    held = [pod for pod, error in errors.items() if isinstance(error, EvictionRefusedError)]
    failed = {
        pod: error
        for pod, error in errors.items()
        if isinstance(error, RetryableError) and pod not in held
    }
    refused = {pod: _text_of(error) for pod, error in errors.items() if pod not in failed}
    return Asked(
        leaving=tuple(pod for pod in answers if pod not in errors),
        refused={**refused, **_budgets_of(ports, held)},
        failed=failed,
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
            refused[pod] = _text_of(error)
    return refused


def _error_of(leave: Callable[[Pod], None], pod: Pod) -> AutoscalerError | None:
    """Ask a pod to leave; return why it does not."""
    try:
        leave(pod)
    except CertificateError:
        raise
    except AutoscalerError as error:
        return error
    return None


def _budgets_of(ports: NodePorts, refused: Sequence[Pod]) -> dict[Pod, str]:
    """Return the budgets that hold pods back, for people."""
    budgets = ports.cluster.disruption_budgets() if refused else ()
    return {pod: budgets_of(pod, budgets) for pod in refused}


def _text_of(error: AutoscalerError) -> str:
    return str(error)[:_LONGEST_REASON]


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
