"""Which pods may be bound to a node before it is ready."""

from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import DEFAULT_SCHEDULER, Pod, Scheduling
from shared.model.kubernetes.taints import Effect, Taint, first_untolerated
from shared.model.resources import PLAIN

# A pod bound early must tolerate a node that is not ready until registration times out (300 s).
_PATIENCE_SECONDS: Final = 300
_EARLY_TAINTS: Final = (
    Taint(key=keys.NODE_NOT_READY_TAINT, effect=Effect.NO_EXECUTE),
    Taint(key=keys.NODE_UNREACHABLE_TAINT, effect=Effect.NO_EXECUTE),
)
# Controllers that replace a deleted pod by an equivalent one.
_REPLACING_OWNERS: Final = frozenset({"ReplicaSet", "ReplicationController"})


def binds_early(pod: Pod) -> str:
    """Return why a pod may not be bound before the node is ready; empty when it may.

    A pod is safe if a controller replaces it, it uses the default scheduler, has no gates, claims
    or extended resources, and tolerates a not-ready node for at least 300 s.

    The kubelet admits a pod whose extended resource its Node does not list, and starts it without.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/lifecycle/predicate.go
    (removeMissingExtendedResources, 2026-11).
    """
    scheduling = pod.scheduling
    if needs_scheduler(pod):
        return needs_scheduler(pod)
    if pod.owner is None:
        return "no controller would replace it"
    if pod.owner.kind not in _REPLACING_OWNERS:
        return f"a {pod.owner.kind} does not replace it freely"
    extended = sorted(set(scheduling.requests) - PLAIN)
    if extended:
        return f"its node must show {extended[0]} first"
    for taint in _EARLY_TAINTS:
        borne = [toleration for toleration in scheduling.tolerations if toleration.tolerates(taint)]
        if not any(
            toleration.seconds is None or toleration.seconds >= _PATIENCE_SECONDS
            for toleration in borne
        ):
            return f"it does not tolerate {taint.key} for {_PATIENCE_SECONDS} s"
    return ""


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
    """Return whether a taint is removed while a node starts, and evicts no pod until then."""
    evicts = taint.key in keys.CLOSING_TAINTS and taint.effect == Effect.NO_EXECUTE
    return keys.is_ephemeral(taint.key) and not evicts


def needs_scheduler(pod: Pod) -> str:
    """Return why only the pod's scheduler can bind it; empty if Dovetail can."""
    return "it is gated" if pod.gated else left_to_scheduler(pod.scheduling)


def left_to_scheduler(scheduling: Scheduling) -> str:
    """Return why a scheduler must bind pods with such demands; empty if it need not."""
    if scheduling.scheduler_name != DEFAULT_SCHEDULER:
        return f"it belongs to scheduler {scheduling.scheduler_name}"
    if scheduling.claims:
        return "its volumes are bound by kube-scheduler"
    if scheduling.resource_claims:
        return "its resource claims are allocated by kube-scheduler"
    return ""
