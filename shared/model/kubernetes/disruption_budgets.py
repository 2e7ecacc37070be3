"""PodDisruptionBudgets: how many pods an application can spare right now."""

from dataclasses import dataclass

from shared.model.kubernetes.pods import LabelSelector, Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudget:
    """One budget as its controller last counted.

    Attributes:
        selector: Whose pods it protects; None protects none, an empty one all of its namespace.
        disruptions_allowed: Pods that may be evicted now.
        lets_unhealthy_go: Whether a pod that is not Ready may be evicted in any case.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int
    lets_unhealthy_go: bool = False

    def refuses(self, pod: Pod) -> bool:
        """Return whether it allows no eviction of a pod that it protects now."""
        if self.lets_unhealthy_go and not pod.ready:
            return False
        return self.disruptions_allowed <= 0

    def protects(self, pod: Pod) -> bool:
        """Return whether the pod counts under this budget."""
        return (
            self.selector is not None
            and pod.namespace == self.namespace
            and self.selector.selects(pod.labels)
        )
