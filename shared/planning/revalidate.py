"""Revalidation: the plan is checked in its order, with all its nodes present from the start.

Nodes that were opened late or have changed may be domains, or may count, where they did not when
earlier pods were admitted. Pods that it refuses return to pending.
"""

from collections import Counter
from typing import Final

from shared.model.ec2.launches import PodRef
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.place import place
from shared.planning.state import PlanState
from shared.scheduling.topology.constraints import accepts
from shared.scheduling.topology.counts import add

_TRIES: Final = 3


def revalidate(plan_state: PlanState) -> None:
    """Judge the order again while nodes came late; at the end everything in it is acceptable."""
    tries = 0
    while plan_state.late:
        plan_state.late = False
        plan_state.work.spend_each(Counter(pod_group.index for pod_group, _, _ in plan_state.order))
        refused = _refused_again(plan_state)
        plan_state.drop_empty()
        if tries == _TRIES:
            return
        tries += 1
        for pod_group in sorted(refused, key=lambda entry: entry.index):
            pod_group.waiting.sort(reverse=True)
            place(plan_state, pod_group)


def _refused_again(plan_state: PlanState) -> set[PendingGroup]:
    plan_state.topology_counts.reset()
    for spot in plan_state.spots:
        if spot.room is None:
            plan_state.topology_counts.open(spot)
    for spot in plan_state.spots:
        for profile in spot.daemon_set_pods:
            add(profile, spot)
    kept: list[tuple[PendingGroup, PodRef, TargetNode]] = []
    refused: set[PendingGroup] = set()
    turned_down: list[tuple[PendingGroup, PodRef, TargetNode]] = []
    for pod_group, ref, spot in plan_state.order:
        kind = pod_group.kind
        if kind.is_ruled and not accepts(kind, spot.labels):
            turned_down.append((pod_group, ref, spot))
            refused.add(pod_group)
            continue
        add(kind.profile, spot)
        kept.append((pod_group, ref, spot))
    for pod_group, ref, spot in turned_down:
        spot.remove(pod_group, ref)
        pod_group.waiting.append(ref)
        if spot.room is None:
            plan_state.loose.append(spot)
    plan_state.order = kept
    return refused
