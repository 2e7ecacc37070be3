"""Revalidation: the plan is checked in binding order, with all its nodes present from the start.

Nodes that were opened late or have changed may be domains, or may count, where they did not when
earlier pods were placed. Pods that it refuses return to pending.
"""

from collections import Counter
from typing import Final

from shared.model.ec2.launches import PodRef
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.place import place
from shared.planning.rules.topology.constraints import accepts
from shared.planning.rules.topology.counts import add
from shared.planning.state import PlanState

_TRIES: Final = 3


def revalidate(plan_state: PlanState) -> None:
    """Check the binding order until no recheck is due; at the end every pod in it is accepted."""
    tries = 0
    while plan_state.recheck:
        plan_state.recheck = False
        plan_state.work.spend_each(
            Counter(pod_group.index for pod_group, _, _ in plan_state.binding_order)
        )
        refused = _refused_again(plan_state)
        plan_state.drop_empty()
        if tries == _TRIES:
            return
        tries += 1
        for pod_group in sorted(refused, key=lambda entry: entry.index):
            pod_group.waiting.sort(reverse=True)
            place(plan_state, pod_group)


def _refused_again(plan_state: PlanState) -> set[PendingGroup]:
    plan_state.topology_counts.restore()
    for target in plan_state.targets:
        if target.existing is None:
            plan_state.topology_counts.open(target)
    for target in plan_state.targets:
        for profile in target.daemon_set_pods:
            add(profile, target)
    kept: list[tuple[PendingGroup, PodRef, TargetNode]] = []
    refused: set[PendingGroup] = set()
    turned_down: list[tuple[PendingGroup, PodRef, TargetNode]] = []
    for pod_group, ref, target in plan_state.binding_order:
        topology = pod_group.topology
        if topology.has_rules and not accepts(topology, target.labels):
            turned_down.append((pod_group, ref, target))
            refused.add(pod_group)
            continue
        add(topology.profile, target)
        kept.append((pod_group, ref, target))
    for pod_group, ref, target in turned_down:
        target.remove_pod(pod_group, ref)
        pod_group.waiting.append(ref)
        if target.existing is None:
            plan_state.underfilled.append(target)
    plan_state.binding_order = kept
    return refused
