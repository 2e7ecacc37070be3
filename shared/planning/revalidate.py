"""Revalidation: the plan is checked in binding order, with all its nodes present from the start.

Nodes that were opened late or have changed may be domains, or may count, where they did not when
earlier pods were placed. Pods that it refuses return to pending.
"""

from collections import Counter
from typing import Final

from shared.planning.placement.place import place
from shared.planning.rules.topology.constraints import accepts
from shared.planning.rules.topology.counts import add
from shared.planning.state import PlacedPod, PlanState

_TRIES: Final = 3


def revalidate(plan_state: PlanState) -> None:
    """Check the binding order until no recheck is due; at the end every pod in it is accepted."""
    for tries_left in range(_TRIES, -1, -1):
        if not plan_state.recheck:
            return
        plan_state.recheck = False
        plan_state.work.spend_each(
            Counter(pod_group.index for pod_group, _, _ in plan_state.binding_order)
        )
        refused = _refused_again(plan_state)
        plan_state.underfilled += [target for _, _, target in refused if target.existing is None]
        pod_groups = plan_state.take_back(refused)
        plan_state.drop_empty()
        for pod_group in pod_groups if tries_left else ():
            place(plan_state, pod_group)


def _refused_again(plan_state: PlanState) -> list[PlacedPod]:
    """Count all pods anew, in binding order; return those that the constraints refuse."""
    plan_state.topology_counts.restore()
    for target in plan_state.new_nodes:
        plan_state.topology_counts.open(target)
    for target in plan_state.targets:
        for profile in target.daemon_set_pods:
            add(profile, target)
    refused = []
    for placed in plan_state.binding_order:
        pod_group, _, target = placed
        if pod_group.topology.has_rules and not accepts(pod_group.topology, target.labels):
            refused.append(placed)
        else:
            add(pod_group.topology.profile, target)
    return refused
