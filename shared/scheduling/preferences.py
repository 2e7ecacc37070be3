"""The ladder of preferences: all are kept at first and dropped one by one, lightest first.

Weighted preferences go by weight, then spreads that may be broken, last the wish to keep off nodes
with a PreferNoSchedule taint.
"""

from enum import StrEnum

from shared.model.kubernetes.pods import Scheduling, SpreadPolicy
from shared.model.requirements import Requirements


class PreferenceKind(StrEnum):
    """What a preference is about."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    NODES = "nodes"
    SPREAD = "spread"
    TAINTS = "taints"


# What a preference is about, and its position in that field of `Scheduling`.
Preference = tuple[PreferenceKind, int]


def preferences(scheduling: Scheduling, *, soft_taints: bool) -> tuple[Preference, ...]:
    """Return the preferences of a pod in the order they are dropped.

    Args:
        soft_taints: Whether any node has, or would have, a PreferNoSchedule taint.
    """
    weights: tuple[tuple[PreferenceKind, list[int | None]], ...] = (
        (PreferenceKind.AFFINITY, [term.weight for term in scheduling.affinity]),
        (PreferenceKind.ANTI_AFFINITY, [term.weight for term in scheduling.anti_affinity]),
        (
            PreferenceKind.NODES,
            [preferred_node.weight for preferred_node in scheduling.preferred_nodes],
        ),
    )
    weighted = [
        (weight, place, -index, (preference_kind, index))
        for place, (preference_kind, many) in enumerate(weights)
        for index, weight in enumerate(many)
        if weight is not None
    ]
    weighted.sort(key=lambda entry: entry[:3])
    spreads: list[Preference] = [
        (PreferenceKind.SPREAD, index)
        for index, rule in enumerate(scheduling.spreads)
        if rule.policy == SpreadPolicy.SCHEDULE_ANYWAY
    ]
    taints: tuple[Preference, ...] = ((PreferenceKind.TAINTS, 0),) if soft_taints else ()
    return (*(entry[3] for entry in weighted), *reversed(spreads), *taints)


def wanted_terms(
    terms: tuple[Requirements, ...], scheduling: Scheduling, preference: Preference
) -> tuple[Requirements, ...]:
    """Return what a node's labels must satisfy, any one of these, while one more wish is kept."""
    preference_kind, index = preference
    if preference_kind != PreferenceKind.NODES:
        return terms
    wanted = scheduling.preferred_nodes[index].requirements
    return tuple(term.merge(wanted) for term in terms)
