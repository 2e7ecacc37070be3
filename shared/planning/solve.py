"""The solver: passes that place the pods of pending groups on nodes, in their order.

Each pass takes the plan state. The first five are a round: they take the groups with waiting pods,
place what they can and leave the other pods waiting. Then each group with pods left drops a
preference, and a further round follows. The other passes take what all rounds have placed.

| pass | gives |
|---|---|
| `place_together` | of a small batch whose rules refer to each other: all its pods, at least cost |
| `_place_on_shared_hosts` | pods that must share a host with their like, or fit beside others |
| `pack_groups` | pods on existing nodes and on new ones, packed at least cost |
| `keep_flexible` | new nodes with options enough for minValues, or none |
| `_place_rest` | pods that packing left, one by one |
| `_fill_without_new_nodes` | spread pods on existing nodes, if no node can be launched |
| `keep_known_domains` | options in domains that the spreads have counted |
| `revalidate` | a binding order in which each pod is accepted, with all nodes there |
| `shrink_nodes` | smaller instances where fewer pods were placed than packed |
| `leave_out_special` | options without accelerators and bare metal that no pod of the node needs |
| `merge_launch_groups` | fewer lists of options, each of which is one CreateFleet call |
| `keep_flexible`, `revalidate` | as above, since the last three changed options |
"""

from collections.abc import Sequence

from shared.planning.merge_launch_groups import merge_launch_groups
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.pack_groups import pack_groups
from shared.planning.placement.node_options import (
    keep_flexible,
    keep_known_domains,
    leave_out_special,
    shrink_nodes,
)
from shared.planning.placement.place import fill, place
from shared.planning.revalidate import revalidate
from shared.planning.state import PlanState
from shared.planning.together.place_together import place_together


def solve(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> None:
    """Place as many pods of these pending groups as possible."""
    active = _waiting(pod_groups)
    while active:
        able = [pod_group for pod_group in active if _relax_until_able(pod_group)]
        _place_round(plan_state, able)
        active = [pod_group for pod_group in _waiting(active) if pod_group.relax()]
    _fill_without_new_nodes(plan_state, pod_groups)
    keep_known_domains(plan_state)
    revalidate(plan_state)
    shrink_nodes(plan_state)
    leave_out_special(plan_state)
    merge_launch_groups(plan_state)
    keep_flexible(plan_state)
    revalidate(plan_state)


def _place_round(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> None:
    if place_together(plan_state, pod_groups):
        return
    pod_groups = _waiting(pod_groups)
    _place_on_shared_hosts(plan_state, pod_groups)
    pack_groups(plan_state, _waiting(pod_groups))
    keep_flexible(plan_state)
    _place_rest(plan_state, _waiting(pod_groups))


def _waiting(pod_groups: Sequence[PendingGroup]) -> list[PendingGroup]:
    return [pod_group for pod_group in pod_groups if pod_group.waiting]


def _relax_until_able(pod_group: PendingGroup) -> bool:
    """Drop preferences that no node could meet; return whether any node is left at all."""
    while not pod_group.has_any_node():
        if not pod_group.relax():
            return False
    return True


def _place_on_shared_hosts(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> None:
    """Place groups that must share a host before all others, since these can join them."""
    together = [pod_group for pod_group in pod_groups if pod_group.topology.must_share_host]
    for pod_group in sorted(together, key=lambda entry: (-entry.priority, entry.index)):
        if any(rule.self_match for rule in pod_group.topology.affinities):
            place(plan_state, pod_group)
        else:
            # Pods that they must follow may run on existing nodes with room.
            fill(plan_state, pod_group)


def _place_rest(plan_state: PlanState, rest: list[PendingGroup]) -> None:
    """Place pods that packing left, one by one."""
    rest.sort(key=lambda pod_group: (-pod_group.priority, pod_group.index))
    moved = True
    while moved and rest:
        before = sum(len(pod_group.waiting) for pod_group in rest)
        for pod_group in rest:
            if (
                plan_state.offerings.provisioners_for(pod_group.node_constraints)
                - pod_group.limited_provisioners
            ):
                place(plan_state, pod_group)
            else:
                # The limits of every provisioner that could launch a node prevent it.
                fill(plan_state, pod_group)
        rest = _waiting(rest)
        # A pod just placed may satisfy the affinity of another.
        moved = sum(len(pod_group.waiting) for pod_group in rest) < before


def _fill_without_new_nodes(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> None:
    """Place spread pods on existing nodes if no node can be launched.

    Spreads then compare only domains that have nodes.
    """
    for pod_group in _waiting(pod_groups) if not plan_state.new_nodes else ():
        if pod_group.topology.spreads:
            pod_group.assume_no_new_nodes()
            fill(plan_state, pod_group)
