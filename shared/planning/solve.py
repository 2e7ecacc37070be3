"""The solver: a round assigns pods to domains, packs them, and places what was packed.

What is left is placed pod by pod. Then each group with pods left drops a preference, and a
further round follows. At the end the binding order is checked again, and launch groups are merged.
"""

from collections.abc import Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.dollars_and_counts import dollars
from shared.packing.packer import pack
from shared.packing.problem import LIMIT, Packing
from shared.planning.merge_launch_groups import merge_launch_groups
from shared.planning.offerings.domain_assignment import DomainAssigner
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.packing_problem import PackedGroup, group_for_packing, to_packing_problem
from shared.planning.placement.flexible import keep_flexible
from shared.planning.placement.place import fill, leave_out_special, place, shrink
from shared.planning.placement.place_packed import place_packed
from shared.planning.revalidate import revalidate
from shared.planning.rules.topology.counts import DomainCounter
from shared.planning.state import PlanState
from shared.planning.together.bundles import bundled
from shared.planning.together.place_together import place_together

_MAX_LIMIT_ROUNDS: Final = 8
# Packing: steps per node type, and the least pods per node, since nodes are filled one by one. Cpu,
# memory, pods and one more resource are included in a group's steps.
_NODE_TYPE: Final = 40
_PODS_PER_NODE: Final = 4
_PLAIN_RESOURCES: Final = 4
# Groups that must not share hosts are packed in this many batches; the placer takes the rest.
_MOST_BATCHES: Final = 8


def solve(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> None:
    """Place as many pods of these pending groups as possible."""
    active = [pod_group for pod_group in pod_groups if pod_group.waiting]
    while active:
        able = [pod_group for pod_group in active if _relax_until_able(pod_group)]
        _place_round(plan_state, able)
        active = [pod_group for pod_group in active if pod_group.waiting and pod_group.relax()]
    if all(target.existing is not None for target in plan_state.targets):
        # No new node can be launched: spreads then compare only domains that have nodes.
        for pod_group in pod_groups:
            if pod_group.waiting and pod_group.topology.spreads:
                pod_group.assume_no_new_nodes()
                fill(plan_state, pod_group)
    plan_state.keep_known_domains()
    revalidate(plan_state)
    shrink(plan_state)
    leave_out_special(plan_state)
    merge_launch_groups(plan_state)
    # Shrinking nodes and merging groups remove options.
    keep_flexible(plan_state)
    revalidate(plan_state)


def _relax_until_able(pod_group: PendingGroup) -> bool:
    """Drop preferences that no node could meet; return whether any node is left at all."""
    while not pod_group.has_any_node():
        if not pod_group.relax():
            return False
    return True


def _place_round(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> None:
    """Place pods for one round: groups that must share a host first, since others can join them.

    Pods that must be on the host of others are packed with these, as bundles.
    """
    if place_together(plan_state, pod_groups):
        return
    pod_groups = [pod_group for pod_group in pod_groups if pod_group.waiting]
    together = [pod_group for pod_group in pod_groups if pod_group.topology.must_share_host]
    for pod_group in sorted(together, key=lambda entry: (-entry.priority, entry.index)):
        if any(rule.self_match for rule in pod_group.topology.affinities):
            place(plan_state, pod_group)
        else:
            # Pods that they must follow may run on existing nodes with room.
            fill(plan_state, pod_group)
    apart, bundles = bundled(plan_state, pod_groups)
    unpacked = [pod_group for pod_group in apart if not pod_group.topology.must_share_host]
    unpacked += bundles
    for _ in range(_MOST_BATCHES):
        if not unpacked:
            break
        batch, unpacked = _without_conflicts(plan_state, unpacked)
        _pack_batch(plan_state, batch)
    keep_flexible(plan_state)
    _place_rest(plan_state, [pod_group for pod_group in pod_groups if pod_group.waiting])


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
        rest = [pod_group for pod_group in rest if pod_group.waiting]
        # A pod just placed may satisfy the affinity of another.
        moved = sum(len(pod_group.waiting) for pod_group in rest) < before


def _without_conflicts(
    plan_state: PlanState, pod_groups: Sequence[PendingGroup]
) -> tuple[list[PendingGroup], list[PendingGroup]]:
    """Split off the groups that must not share a host with many others; they are packed later."""
    later: set[int] = set()
    holders: dict[DomainCounter, list[PendingGroup]] = {}
    counted: dict[DomainCounter, list[PendingGroup]] = {}
    for pod_group in pod_groups:
        topology = pod_group.topology
        plan_state.work.spend(len(topology.avoids) + len(topology.profile), pod_group.index)
        own = frozenset(topology.profile)
        for counter in own:
            counted.setdefault(counter, []).append(pod_group)
        for counter in topology.avoids:
            if counter.key == keys.HOSTNAME and counter not in own:
                holders.setdefault(counter, []).append(pod_group)
    for counter, many in holders.items():
        if counter in counted:
            sides = (counted[counter], many)
            fewer = min(sides, key=lambda side: sum(len(entry.waiting) for entry in side))
            later.update(pod_group.index for pod_group in fewer)
    now = [pod_group for pod_group in pod_groups if pod_group.index not in later]
    if not now:
        # Each group avoids another one: start with the first.
        return list(pod_groups[:1]), list(pod_groups[1:])
    return now, [pod_group for pod_group in pod_groups if pod_group.index in later]


def _pack_batch(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> None:
    """Assign, pack and place; pack pods that a limit refused again, for other Provisioners."""
    for _ in range(_MAX_LIMIT_ROUNDS):
        assigner = DomainAssigner(plan_state.offerings, plan_state.targets, plan_state.work)
        runs = assigner.assign(pod_groups)
        if not runs:
            return
        packed_groups, host_limits = group_for_packing(plan_state, runs, pod_groups)
        _spend_on_packing(plan_state, packed_groups)
        problem, options_by_node_type = to_packing_problem(plan_state, packed_groups, host_limits)
        packing = pack(problem, bounded=False)
        plan_state.remark = plan_state.remark or _remark(plan_state, packing)
        moved = _record_limits(plan_state, packed_groups, packing)
        place_packed(plan_state, packed_groups, options_by_node_type, packing, runs)
        pod_groups = [
            pod_group for pod_group in pod_groups if pod_group in moved and pod_group.waiting
        ]
        if not pod_groups:
            return


def _remark(plan_state: PlanState, packing: Packing) -> str:
    """Return a remark about a packing for users, usually empty."""
    if packing.fallback:
        return f"a simpler plan was taken: {packing.fallback}"
    within_cap = packing.within_cap_micros_per_hour
    if not within_cap:
        return ""
    more = 100 * (within_cap / packing.cost_micros_per_hour - 1)
    return (
        f"nodes above max_node_vcpus {plan_state.settings.max_node_vcpus}: "
        f"within it they would cost {dollars(within_cap)}/h, {more:.1f} % more"
    )


def _spend_on_packing(plan_state: PlanState, packed_groups: Sequence[PackedGroup]) -> None:
    """Count the steps of packing: each node is filled from all groups, equal nodes once."""
    pods = sum(packed_group.count for packed_group in packed_groups)
    fillings = min(pods // _PODS_PER_NODE, len(packed_groups))
    node_types = len(plan_state.table.offers)
    # Each pick of labels repeats the full list of node types.
    part = _NODE_TYPE * node_types // (1 + sum(plan_state.picks_by_group.values()))
    steps = {index: part * many for index, many in plan_state.picks_by_group.items()}
    for packed_group in packed_groups:
        # Host limits are resources, too: each adds one to every node type.
        resources = max(len(packed_group.requests.items) - _PLAIN_RESOURCES, 0)
        taken = fillings + node_types * resources + part // len(packed_groups)
        for share in packed_group.pods:
            index = share.pod_group.index
            steps[index] = steps.get(index, 0) + taken // len(packed_group.pods)
    plan_state.work.spend_each(steps)


def _record_limits(
    plan_state: PlanState, packed_groups: Sequence[PackedGroup], packing: Packing
) -> set[PendingGroup]:
    """Record the limits that refused pods; return the groups that another provisioner may take."""
    moved: set[PendingGroup] = set()
    for index, _, reason in packing.unplaced:
        if reason != LIMIT:
            continue
        packed_group = packed_groups[index]
        names = plan_state.offerings.provisioners_for(packed_group.signature)
        elsewhere = names - packed_group.limited_provisioners - {packed_group.provisioner}
        for share in packed_group.pods:
            share.pod_group.limited_provisioners.add(packed_group.provisioner)
            if elsewhere:
                moved.add(share.pod_group)
    return moved
