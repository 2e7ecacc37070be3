"""The lower bound printed with a plan: what any plan that places the same pods costs at least."""

from collections.abc import Sequence

from shared.model.resources import Resources
from shared.packing.best_bound import least_cost
from shared.packing.problem import PackingProblem
from shared.packing.problem import PodClass as PackedClass
from shared.planning.offerings.host_limits import host_limits, slots_of_new_node, slots_taken
from shared.planning.offerings.offering_index import bit_mask
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.packing_problem import shelve
from shared.planning.state import PlanState
from shared.scheduling.node_constraints import NodeConstraints


def bound(plan_state: PlanState, cost_micros_per_hour: int) -> int:
    """Return what placing the pods that have a place costs at least, in micro-dollars per hour.

    Only the pods' own requirements count: assigned domains, kept preferences, settings and limits
    are choices that another plan may make differently. Of the rules between pods, the bound keeps
    those that no other pod can change: which pods must not share a host.

    The remaining preferences are dropped for good: do not decide on this state afterwards.

    Args:
        plan_state: With every pod on its target node.
        cost_micros_per_hour: What that costs.
    """
    if not cost_micros_per_hour:
        return 0
    in_order = not plan_state.limits and not any(
        _is_led(pod_group) for pod_group in plan_state.pod_groups
    )
    placed = [0] * len(plan_state.pod_groups)
    bought = [0] * len(plan_state.pod_groups)
    for spot in plan_state.spots:
        for index, pods in spot.contents.items():
            placed[index] += len(pods)
            if spot.room is None:
                bought[index] += len(pods)
    some = [pod_group for pod_group in plan_state.pod_groups if placed[pod_group.index]]
    for pod_group in some:
        while pod_group.relax():
            pass
    slots = host_limits(some, spreads=False)
    taken = slots_taken(slots)
    of_new_node = slots_of_new_node(slots)
    signatures: dict[NodeConstraints, int] = {}
    merged: dict[tuple[Resources, int, int], list[int]] = {}
    for pod_group in some:
        signature = pod_group.signature
        number = signatures.setdefault(signature, len(signatures))
        rooms = plan_state.launchables.rooms_accepting(signature)
        requests = pod_group.requests + taken.get(pod_group.index, Resources())
        counts = merged.setdefault((requests, number, rooms), [0, 0])
        counts[0] += placed[pod_group.index]
        counts[1] += bought[pod_group.index]
    shapes, _, accepted = shelve(plan_state, tuple(signatures), of_new_node)
    if in_order:
        sold = _sold(plan_state, some)
        on_sale = [i for i, shape in enumerate(shapes) if shape.provisioner in sold]
        accepted = [mask & bit_mask(on_sale, len(shapes)) for mask in accepted]
    problem = PackingProblem(
        classes=tuple(
            PackedClass(requests=requests, count=count)
            for (requests, _, _), (count, _) in merged.items()
        ),
        shapes=tuple(shapes),
        bins=tuple(room.available + of_new_node for room in plan_state.launchables.rooms),
        compatible=tuple(accepted[number] for _, number, _ in merged),
        compatible_bins=tuple(rooms for _, _, rooms in merged),
    )
    return least_cost(problem, [count for _, count in merged.values()], cost_micros_per_hour)


def _is_led(other_pod_group: PendingGroup) -> bool:
    """Return whether rules or preferences may lead a pod away from the first provisioner."""
    kind = other_pod_group.kind
    return bool(other_pod_group.ladder or kind.keys or kind.is_ruled or kind.by_host)


def _sold(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> frozenset[str]:
    """Return the provisioners that nodes are bought from when each pod takes the first it can."""
    launchables = plan_state.launchables
    found: dict[tuple[NodeConstraints, Resources], str] = {}
    for pod_group in pod_groups:
        question = (pod_group.signature, pod_group.requests)
        if question not in found:
            found[question] = next(
                (
                    str(name)
                    for name, own in launchables.by_seller().items()
                    if launchables.could_hold(pod_group.signature, pod_group.requests, own)
                ),
                "",
            )
    return frozenset(found.values())
