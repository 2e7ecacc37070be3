"""The lower bound of a plan: what any plan that places the same pods costs at least.

It is proved from snapshot and plan alone, so nothing that is to be launched waits for it.
"""

import dataclasses
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.packing.best_bound import least_cost
from shared.packing.bound.least_cost import LeastCost, is_close
from shared.packing.problem import PackingProblem, PackingSettings
from shared.packing.problem import PodClass as PackedClass
from shared.planning.initial_state import asking, initial_state
from shared.planning.offerings.host_limits import host_limits, slots_of_new_node, slots_taken
from shared.planning.offerings.offering_table import bit_mask
from shared.planning.offerings.pending_group import PendingGroup, domain_requirements
from shared.planning.setting_aside import SET_ASIDE
from shared.planning.state import PlanState
from shared.planning.work import Work
from shared.scheduling.node_constraints import NodeConstraints
from shared.scheduling.topology.counts import DomainCounter


def with_bound(snapshot: ClusterSnapshot, plan: Plan) -> Plan:
    """Return the plan with the least that placing the pods it places can cost.

    Only the pods' own requirements count: assigned domains, kept preferences, settings and limits
    are choices that another plan may make differently. Of the rules between pods, the bound keeps
    those that no other pod can change: which pods must not share a host, and how many of them a
    spread over zones sends to each, all zones in which nodes could be launched taken for domains.

    Args:
        snapshot: What the plan was decided for.
        plan: Any plan for it.
    """
    if not plan.cost_micros_per_hour:
        return dataclasses.replace(plan, lower_bound_micros_per_hour=0, bound_is_close=True)
    aside = {left.pod.uid for left in plan.unschedulable if SET_ASIDE in left.reasons}
    waiting = [
        pod for pod in asking(snapshot) if pod.uid not in aside and not pod.scheduling.refusals
    ]
    plan_state = initial_state(
        snapshot, waiting, PackingSettings(), Work(sys.maxsize), weighed=frozenset()
    )
    found = _bound(plan_state, plan)
    return dataclasses.replace(
        plan, lower_bound_micros_per_hour=found.micros_per_hour, bound_is_close=found.close
    )


def _bound(plan_state: PlanState, plan: Plan) -> LeastCost:
    in_order = not plan_state.limits and not any(
        _is_led(pod_group) for pod_group in plan_state.pod_groups
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
    slots = host_limits(some, spreads=False)
    taken = slots_taken(slots)
    of_new_node = slots_of_new_node(slots)
    signatures: dict[NodeConstraints, int] = {}
    merged: dict[tuple[Resources, int, int], list[int]] = {}
    counted = Counter(
        counter for pod_group in plan_state.pod_groups for counter in pod_group.kind.profile
    )
    for pod_group in some:
        requests = pod_group.requests + taken.get(pod_group.index, Resources())
        for signature, count in _by_domain(plan_state, pod_group, placed[pod_group.index], counted):
            number = signatures.setdefault(signature, len(signatures))
            rooms = plan_state.launchables.rooms_accepting(signature)
            counts = merged.setdefault((requests, number, rooms), [0, 0])
            counts[0] += count
            counts[1] += min(count, bought[pod_group.index])
    shapes, _, accepted = plan_state.launchables.shapes(signatures, of_new_node)
    if in_order:
        sold = _sold(plan_state, some)
        on_sale = [i for i, shape in enumerate(shapes) if shape.provisioner in sold]
        accepted = tuple(mask & bit_mask(on_sale, len(shapes)) for mask in accepted)
    problem = PackingProblem(
        classes=tuple(
            PackedClass(requests=requests, count=count)
            for (requests, _, _), (count, _) in merged.items()
        ),
        shapes=shapes,
        bins=tuple(room.available + of_new_node for room in plan_state.launchables.rooms),
        compatible=tuple(accepted[number] for _, number, _ in merged),
        compatible_bins=tuple(rooms for _, _, rooms in merged),
    )
    paid = [count for _, count in merged.values()]
    found = least_cost(problem, paid, plan.cost_micros_per_hour)
    if plan.preferences.stated or any(_has_rules_left_out(pod_group) for pod_group in some):
        close = is_close(found.micros_per_hour, plan.cost_micros_per_hour)
        found = found._replace(close=close)
    return found


def _has_rules_left_out(pod_group: PendingGroup) -> bool:
    """Return whether it has rules that the bound does not keep, or not whole."""
    kind = pod_group.kind
    others = any(counter not in kind.profile for counter in kind.avoids)
    return bool(kind.spreads or kind.affinities or kind.keys or others)


def _by_domain(
    plan_state: PlanState,
    pod_group: PendingGroup,
    pods: int,
    counted: Mapping[DomainCounter, int],
) -> list[tuple[NodeConstraints, int]]:
    """Return how many pods of a group accept which nodes: a spread forces some into each domain."""
    signature = pod_group.signature
    for spread in () if plan_state.daemonsets else pod_group.kind.spreads:
        counter = spread.counter
        if counter in pod_group.kind.profile and counted[counter] == 1:
            forced = spread.forced(pods)
            found = [
                (signature.pinned(domain_requirements({counter.key: domain})), count)
                for domain, count in forced.items()
            ]
            return [*found, (signature, pods - sum(forced.values()))]
    return [(signature, pods)]


def _among(uids: AbstractSet[str], pod_group: PendingGroup) -> int:
    """Return how many pods of a pending group are among some."""
    return sum(ref.uid in uids for ref in pod_group.waiting)


def _is_led(other_pod_group: PendingGroup) -> bool:
    """Return whether rules or preferences may lead a pod away from the first provisioner."""
    kind = other_pod_group.kind
    return bool(
        other_pod_group.stated
        or other_pod_group.wanted
        or kind.keys
        or kind.is_ruled
        or kind.by_host
    )


def _sold(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> frozenset[str]:
    """Return the provisioners that nodes are bought from when each pod takes the first it can."""
    launchables = plan_state.launchables
    found: dict[tuple[NodeConstraints, Resources], str] = {}
    for pod_group in pod_groups:
        question = (pod_group.signature, pod_group.requests)
        if question not in found:
            found[question] = next(
                (
                    name
                    for name, own in launchables.table.by_seller().items()
                    if launchables.could_hold(pod_group.signature, pod_group.requests, own)
                ),
                "",
            )
    return frozenset(found.values())
