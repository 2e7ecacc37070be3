"""In which order a node's pods are evicted; the caller knows the deadline."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace

_UNSCHEDULABLE: Final = Taint(key=keys.UNSCHEDULABLE_TAINT, effect=Effect.NO_SCHEDULE)
_CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})
# Kubernetes' default grace period, in seconds.
_USUAL_GRACE: Final = 30
# A pod that outlives its own grace period by this much no longer has a kubelet that ends it.
STUCK_AFTER: Final = timedelta(minutes=1)


class DrainStep(Struct, frozen=True, kw_only=True):
    """What a drain does next.

    Attributes:
        evict: To be evicted now, sorted by key.
        delete: To be deleted now: the drain's deadline has passed, or they would outlive their
            node. Sorted by key.
        waiting: Still leaving, sorted by key.
        blocked_by: Pods that block the drain by annotation, sorted by key.
        drained: Whether no pod is left to wait for.
    """

    evict: tuple[Pod, ...] = ()
    delete: tuple[Pod, ...] = ()
    waiting: tuple[Pod, ...] = ()
    blocked_by: tuple[Pod, ...] = ()
    drained: bool = False


def is_drainable(pod: Pod, now: datetime) -> bool:
    """Return whether the pod must leave before its node may be removed.

    Not: static pods, ended pods, pods that tolerate being on an unschedulable node (this is how
    DaemonSets are skipped), pods stuck for a minute past their deletionTimestamp.
    """
    if needs_no_eviction(pod):
        return False
    if any(toleration.tolerates(_UNSCHEDULABLE) for toleration in pod.scheduling.tolerations):
        return False
    return pod.deletion_at is None or now < pod.deletion_at + STUCK_AFTER


def needs_no_eviction(pod: Pod) -> bool:
    """Return whether a pod needs no other node: static, ended, or of a DaemonSet."""
    return pod.is_static or pod.is_daemon or pod.is_terminal


def grace_left(pod: Pod, ends_at: datetime, now: datetime) -> int:
    """Return a pod's grace period on a node that ends at `ends_at`, in seconds, at least one."""
    return min(max(1, int((ends_at - now).total_seconds())), _grace(pod))


def drain_step(
    pods: Iterable[Pod],
    now: datetime,
    *,
    voluntary: bool,
    deadline: datetime | None,
    ends_at: datetime | None = None,
) -> DrainStep:
    """Return the next step of a node's drain.

    Plain pods are evicted first; critical ones only when no other is left. A pod with
    do-not-disrupt is not evicted. While a pod has do-not-evict, a voluntary drain evicts none. The
    same pods and time always give the same step.

    Source: https://karpenter.sh/docs/concepts/disruption/#terminationgraceperiod (2026-11).

    Args:
        voluntary: Whether the disruption is voluntary.
        deadline: From when pods are deleted instead of evicted, None for never.
        ends_at: When the node ends, whatever is on it: a pod is deleted early enough to have its
            own grace period. None for when it is drained.
    """
    present = sorted((pod for pod in pods if is_drainable(pod, now)), key=lambda pod: pod.key)
    if not present:
        return DrainStep(drained=True)
    leaving = tuple(pod for pod in present if pod.is_terminating)
    staying = [pod for pod in present if not pod.is_terminating]
    if deadline is not None and now >= deadline:
        return DrainStep(delete=tuple(staying), waiting=leaving)
    late = tuple(pod for pod in present if ends_at is not None and _outlives(pod, ends_at, now))
    staying = [pod for pod in staying if pod not in late]
    step = DrainStep(delete=late, waiting=leaving)
    held = {pod: hold for pod in staying if (hold := pod.blocking_annotation_at(now))}
    if voluntary and any(hold != keys.DO_NOT_DISRUPT for hold in held.values()):
        return replace(step, blocked_by=tuple(held))
    plain = [pod for pod in staying if pod.priority_class not in _CRITICAL]
    if not plain and any(pod.priority_class not in _CRITICAL for pod in leaving):
        return step
    asked = plain or staying
    kept = tuple(pod for pod in asked if held.get(pod) == keys.DO_NOT_DISRUPT)
    return replace(step, evict=tuple(pod for pod in asked if pod not in kept), blocked_by=kept)


def _grace(pod: Pod) -> int:
    return _USUAL_GRACE if pod.grace_period_seconds is None else pod.grace_period_seconds


def _outlives(pod: Pod, ends_at: datetime, now: datetime) -> bool:
    """Return whether a pod that is evicted only now would outlive its node."""
    if pod.deletion_at is not None:
        return pod.deletion_at > max(ends_at, now + timedelta(seconds=1))
    return now >= ends_at - timedelta(seconds=_grace(pod))
