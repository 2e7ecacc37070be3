"""What blocks the voluntary removal of a node: annotations of pods, and PodDisruptionBudgets.

Checked before the node is cordoned.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from shared.disruption.drain import is_drainable
from shared.model import labels as keys
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint, first_untolerated

# Taints of a node that is removed: the cordon that begins a drain, and Karpenter's own.
_OF_REMOVAL: Final = tuple(
    Taint(key=key, effect=Effect.NO_SCHEDULE)
    for key in (keys.UNSCHEDULABLE_TAINT, keys.DISRUPTED_TAINT)
)


class EvictionBlocker(Struct, frozen=True, kw_only=True):
    """A pod that may not be evicted now, and why."""

    pod: Pod
    reason: str


def eviction_blockers(
    pods: Iterable[Pod], budgets: Sequence[PodDisruptionBudget], now: datetime
) -> tuple[EvictionBlocker, ...]:
    """Return the pods that block the removal of a node, sorted by pod key.

    Only pods that a drain would evict count. Pods that share a budget need a disruption each, but
    one that is allowed is enough to begin.

    Args:
        pods: Of the node.
        budgets: Of the whole cluster.
    """
    staying = sorted(
        (pod for pod in pods if is_drainable(pod, now) and not pod.is_terminating),
        key=lambda pod: (pod.key, pod.uid),
    )
    found = ((pod, blocking_reason(pod, budgets, now)) for pod in staying)
    return tuple(EvictionBlocker(pod=pod, reason=reason) for pod, reason in found if reason)


def blocking_reason(pod: Pod, budgets: Sequence[PodDisruptionBudget], now: datetime) -> str:
    """Return why a pod may not be evicted now, empty when it may."""
    if annotation := pod.blocking_annotation_at(now):
        return f"pod {pod.key} has the annotation {annotation}"
    protecting = [budget for budget in budgets if budget.protects(pod)]
    if len(protecting) > 1:
        # The eviction API always refuses such a pod.
        names = ", ".join(sorted(budget.name for budget in protecting))
        return f"pod {pod.key} is under several PodDisruptionBudgets: {names}"
    if any(budget.refuses(pod) for budget in protecting):
        return f"PodDisruptionBudget {protecting[0].name} holds pod {pod.key}"
    return ""


def first_blocking_reason(
    pods: Iterable[Pod], budgets: Sequence[PodDisruptionBudget], now: datetime
) -> str:
    """Return why the pods of a node keep it from being chosen, empty when they do not.

    PodDisruptionBudgets are not checked for pods that no drain evicts: static pods, and pods that
    tolerate the taints of a node that is removed. All pods of DaemonSets tolerate a cordon:
    Karpenter's taint decides.

    Source: CanEvictPods in
    https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/utils/pdb/pdb.go (2026-11-27).
    """
    found = (
        blocking_reason(pod, () if pod.is_static or _bears_removal(pod) else budgets, now)
        for pod in pods
        if not (pod.is_terminating or pod.is_terminal)
    )
    return next((value for value in found if value), "")


def _bears_removal(pod: Pod) -> bool:
    return first_untolerated(_OF_REMOVAL, pod.scheduling.tolerations) is None


def protecting_budgets(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> str:
    """Return which budgets protect a pod whose eviction was refused, for people."""
    names = sorted(budget.name for budget in budgets if budget.protects(pod))
    if not names:
        return "a PodDisruptionBudget"
    return f"PodDisruptionBudget {' and '.join(names)}"
