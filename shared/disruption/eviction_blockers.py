"""Who holds a node that is to be removed by choice: annotations and budgets, looked at first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.disruption.drain import is_drainable
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.pods import Pod


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


def budgets_of(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> str:
    """Return which budgets protect a pod whose eviction was refused, for people."""
    names = sorted(budget.name for budget in budgets if budget.protects(pod))
    if not names:
        return "a PodDisruptionBudget"
    return f"PodDisruptionBudget {' and '.join(names)}"
