"""Preferences of pods: which they state, and which of them are kept, try by try."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from shared.model.kubernetes.pods import Scheduling, SpreadPolicy
from shared.model.policy import PreferencePolicy
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
# The wish to keep off nodes with a PreferNoSchedule taint: it is the node's, not the pod's.
KEEP_OFF: Final[Preference] = (PreferenceKind.TAINTS, 0)

# Up to this many preferences, each one is left out alone before several are.
_FEW: Final = 8
# The order in which Karpenter drops them, and within a kind the heaviest first: its
# pkg/controllers/provisioning/scheduling/preferences.go, v1.14.1 (2026-11).
_KARPENTERS_ORDER: Final = (
    PreferenceKind.AFFINITY,
    PreferenceKind.ANTI_AFFINITY,
    PreferenceKind.NODES,
    PreferenceKind.SPREAD,
    PreferenceKind.TAINTS,
)


def stated_preferences(scheduling: Scheduling) -> tuple[Preference, ...]:
    """Return the preferences of a pod, heaviest first; spreads, which have no weight, are last."""
    weighted: list[tuple[PreferenceKind, list[int | None]]] = [
        (PreferenceKind.NODES, [preferred.weight for preferred in scheduling.preferred_nodes]),
        (PreferenceKind.ANTI_AFFINITY, [term.weight for term in scheduling.anti_affinity]),
        (PreferenceKind.AFFINITY, [term.weight for term in scheduling.affinity]),
    ]
    found = [
        (-weight, place, index, (kind, index))
        for place, (kind, weights) in enumerate(weighted)
        for index, weight in enumerate(weights)
        if weight is not None
    ]
    found.sort(key=lambda entry: entry[:3])
    spreads = [
        (PreferenceKind.SPREAD, index)
        for index, rule in enumerate(scheduling.spreads)
        if rule.policy == SpreadPolicy.SCHEDULE_ANYWAY
    ]
    return (*(entry[3] for entry in found), *spreads)


def weight_of(scheduling: Scheduling, preference: Preference) -> int:
    """Return the weight of a preference, from 1 to 100; 0 for a spread."""
    kind, index = preference
    if kind == PreferenceKind.NODES:
        return scheduling.preferred_nodes[index].weight
    if kind == PreferenceKind.SPREAD:
        return 0
    terms = scheduling.affinity if kind == PreferenceKind.AFFINITY else scheduling.anti_affinity
    return terms[index].weight or 0


def preferences_by_try(
    wanted: Sequence[Preference], policy: PreferencePolicy
) -> tuple[tuple[Preference, ...], ...]:
    """Return which preferences are rules in the first try to place a pod, in the second, and so on.

    Under `Respect`, one after the other is dropped in Karpenter's order, and of the preferences
    for nodes only the heaviest that is left is a rule. Otherwise each is left out alone, the
    lightest first, then the lightest two, three and so on. In the last try none is a rule.

    Args:
        wanted: What a pod prefers, heaviest first.
    """
    if policy == PreferencePolicy.RESPECT:
        order = sorted(wanted, key=lambda preference: _KARPENTERS_ORDER.index(preference[0]))
        return tuple(_one_for_nodes(order[start:]) for start in range(len(order) + 1))
    own = tuple(preference for preference in wanted if preference != KEEP_OFF)
    off = (KEEP_OFF,) if KEEP_OFF in wanted else ()
    found = [(*own, *off)]
    if len(own) <= _FEW:
        found += [(*own[:last], *own[last + 1 :], *off) for last in range(len(own) - 1, -1, -1)]
    found += [(*own[:most], *off) for most in range(len(own) - 1, -1, -1)]
    return tuple(dict.fromkeys((*found, ())))


def _one_for_nodes(kept: Sequence[Preference]) -> tuple[Preference, ...]:
    for_nodes = [preference for preference in kept if preference[0] == PreferenceKind.NODES]
    return tuple(preference for preference in kept if preference not in for_nodes[1:])


def wanted_terms(
    terms: tuple[Requirements, ...], scheduling: Scheduling, index: int
) -> tuple[Requirements, ...]:
    """Return the OR-ed terms that a node's labels must satisfy with one more preference."""
    wanted = scheduling.preferred_nodes[index].requirements
    return tuple(term.merge(wanted) for term in terms)
