"""Packing of pending groups: in batches, each assigned to domains, packed, and placed.

Pods that must be on the host of others are packed with these, as bundles. Groups that must not
share hosts are packed in batches of their own, and pods that a limit refused once more, for other
Provisioners. What is left after that stays pending.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.dollars_and_counts import dollars
from shared.packing.packer import pack
from shared.packing.problem import LIMIT, Packing
from shared.planning.offerings.domain_assignment import DomainAssigner
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.packing_problem import PackedGroup, group_for_packing, to_packing_problem
from shared.planning.place_packed import place_packed
from shared.planning.rules.topology.counts import DomainCounter
from shared.planning.state import PlanState
from shared.planning.together.bundles import bundled

_MAX_LIMIT_ROUNDS: Final = 8
# Steps per node type, and the least pods per node, since nodes are filled one by one. Cpu, memory,
# pods and one more resource are included in a group's steps.
_NODE_TYPE: Final = 40
_PODS_PER_NODE: Final = 4
_PLAIN_RESOURCES: Final = 4
# Groups that must not share hosts are packed in this many batches; the placer takes the rest.
_MOST_BATCHES: Final = 8


def pack_groups(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> None:
    """Place as many pods of these groups as the packer finds nodes for."""
    apart, bundles = bundled(plan_state, pod_groups)
    unpacked = [pod_group for pod_group in apart if not pod_group.topology.must_share_host]
    unpacked += bundles
    for _ in range(_MOST_BATCHES):
        if not unpacked:
            break
        batch, unpacked = _without_conflicts(plan_state, unpacked)
        _pack_batch(plan_state, batch)


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
    picks = {pod_group.index: pod_group.picks for pod_group in plan_state.pod_groups}
    part = _NODE_TYPE * node_types // (1 + sum(picks.values()))
    steps = Counter({index: part * many for index, many in picks.items()})
    for packed_group in packed_groups:
        # Host limits are resources, too: each adds one to every node type.
        resources = max(len(packed_group.requests.items) - _PLAIN_RESOURCES, 0)
        taken = fillings + node_types * resources + part // len(packed_groups)
        for share in packed_group.pods:
            steps[share.pod_group.index] += taken // len(packed_group.pods)
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
