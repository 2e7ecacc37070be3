"""PodDisruptionBudgets: how many pods of an application may be evicted now."""

from msgspec import Struct

from shared.model.kubernetes.pods import LabelSelector, Pod


class PodDisruptionBudget(Struct, frozen=True, kw_only=True):
    """One PodDisruptionBudget, with the counts of its last status.

    Attributes:
        selector: Selects the pods it protects; None for none, an empty selector for all of its
            namespace.
        disruptions_allowed: Pods that may be evicted now.
        always_allows_unhealthy: Whether a pod that is not Ready may be evicted in any case.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int
    always_allows_unhealthy: bool = False

    def refuses(self, pod: Pod) -> bool:
        """Return whether it forbids the eviction of a pod that it protects now."""
        if self.always_allows_unhealthy and not pod.ready:
            return False
        return self.disruptions_allowed <= 0

    def protects(self, pod: Pod) -> bool:
        """Return whether the pod counts under this budget."""
        return (
            self.selector is not None
            and pod.namespace == self.namespace
            and self.selector.selects(pod.labels)
        )
