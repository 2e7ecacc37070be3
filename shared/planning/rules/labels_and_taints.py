"""Whether a pod may run on a node with given labels and taints, and if not, why."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from shared.model.kubernetes.pods import Scheduling
from shared.model.kubernetes.taints import Effect, Taint, Toleration, first_untolerated
from shared.model.requirements import Requirements

Port = tuple[str, str, int]
# The host name of a new node is not known yet, so no pod can ask for it.
UNKNOWN_HOST: Final = "\x00"

# Alternatives of volumes multiply; of more than this many, the first ones are kept.
_MOST_TERMS: Final = 256


@lru_cache(maxsize=256)
def accepted_terms(scheduling: Scheduling) -> tuple[Requirements, ...]:
    """Return the OR-ed terms that a node's labels must satisfy.

    Each holds the node selector, one alternative of the required node affinity and one of each
    volume. Without any of these there is one term, which is empty.
    """
    terms = node_terms(scheduling)
    for alternatives in scheduling.volume_terms:
        merged = [term.merge(alternative) for term in terms for alternative in alternatives]
        terms = tuple(merged[:_MOST_TERMS])
    return terms


def node_terms(scheduling: Scheduling) -> tuple[Requirements, ...]:
    """Return the OR-ed terms of node selector and required node affinity."""
    if not scheduling.required_terms:
        return (scheduling.node_selector,)
    return tuple(scheduling.node_selector.merge(term) for term in scheduling.required_terms)


def labels_accepted(scheduling: Scheduling, labels: Mapping[str, str]) -> bool:
    """Return whether node selector, required node affinity and volumes accept a node's labels."""
    return any(term.allow_labels(labels) for term in accepted_terms(scheduling))


def taint_refusal(scheduling: Scheduling, taints: Sequence[Taint]) -> str:
    """Return which taint keeps the pod away, empty when none does."""
    taint = first_untolerated(taints, scheduling.tolerations)
    return "" if taint is None else f"does not tolerate taint {taint.describe()}"


def taints_tolerated(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], *, strict: bool = False
) -> bool:
    """Return whether no taint keeps a pod away.

    Args:
        strict: Whether a PreferNoSchedule taint keeps it away, too.
    """
    if first_untolerated(taints, tolerations) is not None:
        return False
    return not strict or all(
        any(toleration.tolerates(taint) for toleration in tolerations)
        for taint in taints
        if taint.effect == Effect.PREFER_NO_SCHEDULE
    )


def ports_conflict(port: Port, other: Port) -> bool:
    """Return whether two host ports cannot be used on one node."""
    anywhere = ("", "0.0.0.0", "::")  # noqa: S104 - what a manifest says, nothing is bound
    return port[1:] == other[1:] and (
        port[0] == other[0] or port[0] in anywhere or other[0] in anywhere
    )
