"""In which order a node's pods are asked to leave; the caller knows the deadline."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint

_UNSCHEDULABLE: Final = Taint(key=keys.UNSCHEDULABLE_TAINT, effect=Effect.NO_SCHEDULE)
_CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})
# A pod that outlives its own grace period by this much no longer has a kubelet that ends it.
STUCK_AFTER: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStep:
    """What a drain does next.

    Attributes:
        evict: To be evicted now, sorted by key.
        delete: To be deleted now because the drain's deadline has passed, sorted by key.
        waiting: Still leaving, sorted by key.
        blocked_by: Pods that forbid the drain by annotation, sorted by key.
        drained: Whether no pod is left to wait for.
    """

    evict: tuple[Pod, ...] = ()
    delete: tuple[Pod, ...] = ()
    waiting: tuple[Pod, ...] = ()
    blocked_by: tuple[Pod, ...] = ()
    drained: bool = False


def is_drainable(pod: Pod, now: datetime) -> bool:
    """Return whether the pod must leave before its node may go.

    Not: static pods, ended pods, pods that tolerate being on an unschedulable node (this is how
    DaemonSets are skipped), pods stuck a minute past their own end.
    """
    if is_left_behind(pod):
        return False
    if any(toleration.tolerates(_UNSCHEDULABLE) for toleration in pod.scheduling.tolerations):
        return False
    return pod.deletion_at is None or now < pod.deletion_at + STUCK_AFTER


def is_left_behind(pod: Pod) -> bool:
    """Return whether a pod needs no other node: static, ended, or of a DaemonSet."""
    return pod.is_static or pod.is_daemon or pod.is_terminal


def drain_step(
    pods: Iterable[Pod], now: datetime, *, voluntary: bool, deadline: datetime | None
) -> DrainStep:
    """Return the next step of a node's drain.

    Plain pods are evicted first; critical ones only when no other is left. The same pods and
    time always give the same step.

    Args:
        voluntary: Whether we chose to remove the node: then an annotation of a pod holds it.
        deadline: From when pods are deleted instead of asked, None for never.
    """
    present = sorted((pod for pod in pods if is_drainable(pod, now)), key=lambda pod: pod.key)
    if not present:
        return DrainStep(drained=True)
    leaving = tuple(pod for pod in present if pod.is_terminating)
    staying = [pod for pod in present if not pod.is_terminating]
    if deadline is not None and now >= deadline:
        return DrainStep(delete=tuple(staying), waiting=leaving)
    if voluntary:
        blocked = tuple(pod for pod in staying if pod.hold)
        if blocked:
            return DrainStep(waiting=leaving, blocked_by=blocked)
    plain = tuple(pod for pod in staying if pod.priority_class not in _CRITICAL)
    if plain:
        return DrainStep(evict=plain, waiting=leaving)
    if any(pod.priority_class not in _CRITICAL for pod in leaving):
        return DrainStep(waiting=leaving)
    return DrainStep(evict=tuple(staying), waiting=leaving)
