"""What a change of manifests does to their plan: nodes, dollars and pods, by owner and workload."""

from collections import Counter
from typing import Final

from msgspec import Struct

from functions.cli.plan.svg_plan import workload_of
from functions.cli.plan.without_place import Planned, WithoutPlace, without_place
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.resources import Resources

# Pods of others on the same nodes change what a workload's own take of them by less.
_LEAST_MICROS: Final = 1_000


class Change(Struct, frozen=True, kw_only=True):
    """A figure of something before and after; costs are in micro-dollars per hour.

    Attributes:
        name: Of the owner or workload.
        count: Nodes of an owner, pods of a workload.
    """

    name: str
    count: tuple[int, int]
    cost: tuple[int, int]


class ManifestDiff(Struct, frozen=True, kw_only=True):
    """How the plan for new manifests differs from that for the old ones.

    Attributes:
        nodes: New nodes, before and after; likewise the others.
        kept: Preferences kept, and how many there are.
        no_place: Pods that are new or had a place, and have none now, by workload.
        owners: Owners whose nodes or costs differ, sorted by how much more they cost.
        workloads: Workloads whose pods or costs differ, likewise. The price of a node is shared by
            its pods, by the resource of which each takes most.
    """

    nodes: tuple[int, int]
    cost: tuple[int, int]
    pods: tuple[int, int]
    kept: tuple[tuple[int, int], tuple[int, int]]
    no_place: tuple[WithoutPlace, ...]
    owners: tuple[Change, ...]
    workloads: tuple[Change, ...]

    @property
    def increase_micros_per_hour(self) -> int:
        """How much more the new plan costs, negative for less."""
        return self.cost[1] - self.cost[0]


def diff(before: Planned, after: Planned) -> ManifestDiff:
    """Return how the second plan differs from the first."""
    left_before = {one.pod.key for one in before.plan.unschedulable}
    return ManifestDiff(
        nodes=(len(before.plan.nodes), len(after.plan.nodes)),
        cost=(before.plan.cost_micros_per_hour, after.plan.cost_micros_per_hour),
        pods=(_placed(before.plan), _placed(after.plan)),
        kept=(
            (before.plan.preferences.kept, before.plan.preferences.stated),
            (after.plan.preferences.kept, after.plan.preferences.stated),
        ),
        no_place=without_place(after, lambda key: key not in left_before),
        owners=_changes(_by_owner(before.plan), _by_owner(after.plan)),
        workloads=_changes(_by_workload(before), _by_workload(after)),
    )


def _placed(plan: Plan) -> int:
    return sum(len(node.pods) for node in plan.nodes) + sum(
        len(placement.pods) for placement in plan.placements
    )


_Figures = dict[str, tuple[int, int]]


def _by_owner(plan: Plan) -> _Figures:
    """Return nodes and cost of each owner."""
    nodes: Counter[str] = Counter(node.provisioner for node in plan.nodes)
    cost: Counter[str] = Counter()
    for node in plan.nodes:
        cost[node.provisioner] += node.price_micros_per_hour
    return {name: (count, cost[name]) for name, count in nodes.items()}


def _by_workload(planned: Planned) -> _Figures:
    """Return placed pods and cost of each workload."""
    pods = {pod.uid: pod for pod in planned.snapshot.pending}
    counts: Counter[str] = Counter()
    cost: Counter[str] = Counter()
    for node in planned.plan.nodes:
        here = [pods[ref.uid] for ref in node.pods]
        for pod, share in zip(here, _shares(node, here), strict=True):
            counts[workload_of(pod)] += 1
            cost[workload_of(pod)] += share
    for placement in planned.plan.placements:
        counts.update(workload_of(pods[ref.uid]) for ref in placement.pods)
    return {name: (count, cost[name]) for name, count in counts.items()}


def _shares(node: PlannedNode, pods: list[Pod]) -> list[int]:
    """Return what each pod takes of the price of its node; the sum is the price."""
    room = node.options[0].allocatable
    weights = [max(1, _most_of(pod.scheduling.requests, room)) for pod in pods]
    whole, price = sum(weights), node.price_micros_per_hour
    ends = [price * sum(weights[:number]) // whole for number in range(1, len(weights) + 1)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _most_of(requests: Resources, room: Resources) -> int:
    """Return the largest share of a resource that is requested, in millionths."""
    return max(
        (amount * 1_000_000 // room[name] for name, amount in requests.items if room[name]),
        default=0,
    )


def _changes(before: _Figures, after: _Figures) -> tuple[Change, ...]:
    nothing = (0, 0)
    found = []
    for name in {*before, *after}:
        old, new = before.get(name, nothing), after.get(name, nothing)
        if old[0] != new[0] or abs(new[1] - old[1]) >= _LEAST_MICROS:
            found.append(Change(name=name, count=(old[0], new[0]), cost=(old[1], new[1])))
    return tuple(sorted(found, key=lambda one: (one.cost[0] - one.cost[1], one.name)))
