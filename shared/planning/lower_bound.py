"""The lower bound of a plan: what any plan that places the same pods costs at least.

It is proved from snapshot and plan alone, so no launch waits for it.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.best_bound import least_cost
from shared.packing.bound.least_cost import LeastCost, is_close
from shared.packing.problem import ItemClass as PackedClass
from shared.packing.problem import PackingProblem, PackingSettings
from shared.planning.initial_state import initial_state, pods_to_place
from shared.planning.offerings.host_limits import (
    find_host_limits,
    pseudo_capacity_of_new_node,
    pseudo_requests,
)
from shared.planning.offerings.offering_table import bit_mask
from shared.planning.offerings.pending_group import PendingGroup, domain_requirements
from shared.planning.rules.node_constraints import NodeConstraints
from shared.planning.rules.topology.counts import DomainCounter
from shared.planning.setting_aside import SET_ASIDE
from shared.planning.state import PlanState
from shared.planning.work import Work


def with_bound(snapshot: ClusterSnapshot, plan: Plan) -> Plan:
    """Return the plan with its lower bound: the least that placing the same pods can cost.

    Only the pods' own requirements count: assigned domains, kept preferences, settings and limits
    are choices that another plan may make differently. Of the rules between pods, the bound keeps
    those that no other pod can change: which pods must not share a host, and how many pods a spread
    over zones forces into each, where every zone in which nodes could be launched counts as a
    domain.

    Args:
        snapshot: What the plan was decided for.
        plan: Any plan for it.
    """
    if not plan.cost_micros_per_hour:
        return replace(plan, lower_bound_micros_per_hour=0, bound_is_close=True)
    aside = {left.pod.uid for left in plan.unschedulable if SET_ASIDE in left.reasons}
    waiting = [
        pod
        for pod in pods_to_place(snapshot)
        if pod.uid not in aside and not pod.scheduling.refusals
    ]
    plan_state = initial_state(snapshot, waiting, PackingSettings(), Work(sys.maxsize))
    found = _bound(plan_state, plan)
    return replace(
        plan, lower_bound_micros_per_hour=found.micros_per_hour, bound_is_close=found.close
    )


def _bound(plan_state: PlanState, plan: Plan) -> LeastCost:
    in_order = not plan_state.limits and not any(
        _may_leave_first_provisioner(pod_group) for pod_group in plan_state.pod_groups
    )
    on_new = {ref.uid for node in plan.nodes for ref in node.pods}
    there = {ref.uid for placement in plan.placements for ref in placement.pods}
    bought = [_among(on_new, pod_group) for pod_group in plan_state.pod_groups]
    placed = [
        count + _among(there, pod_group)
        for count, pod_group in zip(bought, plan_state.pod_groups, strict=True)
    ]
    some = [pod_group for pod_group in plan_state.pod_groups if placed[pod_group.index]]
    for pod_group in some:
        while pod_group.relax():
            pass
    host_limits = find_host_limits(some, spreads=False)
    pseudo_taken = pseudo_requests(host_limits)
    pseudo_of_new_node = pseudo_capacity_of_new_node(host_limits)
    numbers: dict[NodeConstraints, int] = {}
    merged: dict[tuple[Resources, int, int], list[int]] = {}
    counted = Counter(
        counter for pod_group in plan_state.pod_groups for counter in pod_group.topology.profile
    )
    for pod_group in some:
        requests = pod_group.requests + pseudo_taken.get(pod_group.index, Resources())
        for node_constraints, count in _by_domain(
            plan_state, pod_group, placed[pod_group.index], counted
        ):
            number = numbers.setdefault(node_constraints, len(numbers))
            existing_mask = plan_state.offerings.existing_accepting(node_constraints)
            counts = merged.setdefault((requests, number, existing_mask), [0, 0])
            counts[0] += count
            counts[1] += min(count, bought[pod_group.index])
    node_types, _, accepted = plan_state.offerings.node_types(numbers, pseudo_of_new_node)
    if in_order:
        asked = {(pod_group.node_constraints, pod_group.requests) for pod_group in some}
        first_names = {plan_state.offerings.first_provisioner(*one) for one in asked}
        kept = [i for i, node_type in enumerate(node_types) if node_type.provisioner in first_names]
        accepted = tuple(mask & bit_mask(kept, len(node_types)) for mask in accepted)
    problem = PackingProblem(
        classes=tuple(
            PackedClass(requests=requests, count=count)
            for (requests, _, _), (count, _) in merged.items()
        ),
        node_types=node_types,
        bins=tuple(
            existing.available + pseudo_of_new_node
            for existing in plan_state.offerings.existing_nodes
        ),
        compatible=tuple(accepted[number] for _, number, _ in merged),
        compatible_bins=tuple(existing_mask for _, _, existing_mask in merged),
    )
    paid = [count for _, count in merged.values()]
    found = least_cost(problem, paid, plan.cost_micros_per_hour)
    if plan.preferences.stated or any(_has_rules_left_out(pod_group) for pod_group in some):
        close = is_close(found.micros_per_hour, plan.cost_micros_per_hour)
        found = found._replace(close=close)
    return found


def _has_rules_left_out(pod_group: PendingGroup) -> bool:
    """Return whether the group has rules that the bound ignores, wholly or in part."""
    topology = pod_group.topology
    others = any(counter not in topology.profile for counter in topology.avoids)
    return bool(topology.spreads or topology.affinities or topology.keys or others)


def _by_domain(
    plan_state: PlanState,
    pod_group: PendingGroup,
    pods: int,
    counted: Mapping[DomainCounter, int],
) -> list[tuple[NodeConstraints, int]]:
    """Return node constraints with pod counts of a group: a spread forces pods into each domain."""
    node_constraints = pod_group.node_constraints
    for spread in () if plan_state.daemonsets else pod_group.topology.spreads:
        counter = spread.counter
        if counter in pod_group.topology.profile and counted[counter] == 1:
            forced = spread.least_by_domain(pods)
            found = [
                (node_constraints.pinned(domain_requirements({counter.key: domain})), count)
                for domain, count in forced.items()
            ]
            return [*found, (node_constraints, pods - sum(forced.values()))]
    return [(node_constraints, pods)]


def _among(uids: AbstractSet[str], pod_group: PendingGroup) -> int:
    """Return how many pods of a pending group have one of these uids."""
    return sum(ref.uid in uids for ref in pod_group.waiting)


def _may_leave_first_provisioner(pod_group: PendingGroup) -> bool:
    """Return whether rules or preferences may keep a pod off the first Provisioner that fits it."""
    topology = pod_group.topology
    return bool(
        pod_group.preferences
        or pod_group.preferences_as_rules
        or topology.keys
        or topology.has_rules
        or topology.has_host_rules
    )
