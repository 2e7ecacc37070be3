"""Whether a pod may stand on a node with given labels and taints, and if not, why."""

from collections.abc import Mapping, Sequence

from shared.model.pods import Scheduling
from shared.model.requirements import Requirements
from shared.model.taints import Taint, first_untolerated


def accepted_terms(scheduling: Scheduling) -> tuple[Requirements, ...]:
    """Return what a node's labels must satisfy: any one of these, each with the node selector.

    Without node affinity there is one, the node selector alone.
    """
    if not scheduling.required_terms:
        return (scheduling.node_selector,)
    return tuple(scheduling.node_selector.merge(term) for term in scheduling.required_terms)


def labels_accepted(scheduling: Scheduling, labels: Mapping[str, str]) -> bool:
    """Return whether node selector and required node affinity accept a node's labels."""
    return any(term.allow_labels(labels) for term in accepted_terms(scheduling))


def taint_refusal(scheduling: Scheduling, taints: Sequence[Taint]) -> str:
    """Return which taint keeps the pod away, empty when none does."""
    taint = first_untolerated(taints, scheduling.tolerations)
    return "" if taint is None else f"does not tolerate taint {taint.describe()}"
