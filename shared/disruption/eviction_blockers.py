"""Who holds a node that is to be removed by choice: annotations and budgets, looked at first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.disruption.drain import is_drainable
from shared.model import labels as keys
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint, first_untolerated

# What marks a node that goes: the cordon that a drain begins with, and Karpenter's own taint.
_OF_REMOVAL: Final = tuple(
    Taint(key=key, effect=Effect.NO_SCHEDULE)
    for key in (keys.UNSCHEDULABLE_TAINT, keys.DISRUPTED_TAINT)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One pod that may not be asked to leave now, and why."""

    pod: Pod
    reason: str


def holds(
    pods: Iterable[Pod], budgets: Sequence[PodDisruptionBudget], now: datetime
) -> tuple[Hold, ...]:
    """Return who holds a node, sorted by pod key.

    Only pods that a drain would ask to leave count. Pods that share a budget are counted
    together: two of them need two disruptions, but one that is allowed is enough to begin.

    Args:
        pods: Of the node.
        budgets: Of the whole cluster.
    """
    staying = sorted(
        (pod for pod in pods if is_drainable(pod, now) and not pod.is_terminating),
        key=lambda pod: (pod.key, pod.uid),
    )
    found = ((pod, hold_of(pod, budgets, now)) for pod in staying)
    return tuple(Hold(pod=pod, reason=reason) for pod, reason in found if reason)


def hold_of(pod: Pod, budgets: Sequence[PodDisruptionBudget], now: datetime) -> str:
    """Return why a pod may not be asked to leave now, empty when it may."""
    if hold := pod.hold_at(now):
        return f"pod {pod.key} has the annotation {hold}"
    protecting = [budget for budget in budgets if budget.protects(pod)]
    if len(protecting) > 1:
        # The eviction API refuses such a pod for ever.
        names = ", ".join(sorted(budget.name for budget in protecting))
        return f"pod {pod.key} is under several PodDisruptionBudgets: {names}"
    if any(budget.refuses(pod) for budget in protecting):
        return f"PodDisruptionBudget {protecting[0].name} holds pod {pod.key}"
    return ""


def first_hold(pods: Iterable[Pod], budgets: Sequence[PodDisruptionBudget], now: datetime) -> str:
    """Return why the pods of a node keep it from being chosen, empty when they do not.

    No budget is asked about a pod that no drain evicts, which is static or bears whatever a node
    that goes is marked with. Pods of DaemonSets all bear a cordon: Karpenter's taint decides.

    Source: CanEvictPods in
    https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/utils/pdb/pdb.go (2026-11-27).
    """
    found = (
        hold_of(pod, () if pod.is_static or _bears_removal(pod) else budgets, now)
        for pod in pods
        if not (pod.is_terminating or pod.is_terminal)
    )
    return next((value for value in found if value), "")


def _bears_removal(pod: Pod) -> bool:
    return first_untolerated(_OF_REMOVAL, pod.scheduling.tolerations) is None


def budgets_of(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> str:
    """Return which budgets protect a pod whose eviction was refused, for people."""
    names = sorted(budget.name for budget in budgets if budget.protects(pod))
    if not names:
        return "a PodDisruptionBudget"
    return f"PodDisruptionBudget {' and '.join(names)}"
