"""What a change of manifests does to their plan: nodes, dollars and pods, by owner and workload."""

from collections import Counter
from typing import Final

from msgspec import Struct

from functions.cli.plan.planned import Planned
from functions.cli.plan.svg_plan import workload_of
from functions.cli.plan.without_place import WithoutPlace, without_place
from functions.cli.plan.workload_costs import workload_costs
from shared.model.ec2.launches import PodRef
from shared.model.plan import Plan

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
        cost_without_jobs: Of what runs always, in micro-dollars per hour.
        kept: Preferences kept, and how many there are.
        no_place: Pods that are new or had a place, and have none now, by workload.
        owners: Owners whose nodes or costs differ, sorted by how much more they cost.
        workloads: Workloads whose pods or costs differ, likewise.
    """

    nodes: tuple[int, int]
    cost: tuple[int, int]
    cost_without_jobs: tuple[int, int]
    pods: tuple[int, int]
    kept: tuple[tuple[int, int], tuple[int, int]]
    no_place: tuple[WithoutPlace, ...]
    owners: tuple[Change, ...]
    workloads: tuple[Change, ...]


def diff(before: Planned, after: Planned) -> ManifestDiff:
    """Return how the second plan differs from the first."""
    left_before = {one.pod.key for one in before.plan.unschedulable}
    return ManifestDiff(
        nodes=(len(before.plan.nodes), len(after.plan.nodes)),
        cost=(before.plan.cost_micros_per_hour, after.plan.cost_micros_per_hour),
        cost_without_jobs=(before.cost_without_jobs, after.cost_without_jobs),
        pods=(sum(map(len, _placed(before.plan))), sum(map(len, _placed(after.plan)))),
        kept=(
            (before.plan.preferences.kept, before.plan.preferences.stated),
            (after.plan.preferences.kept, after.plan.preferences.stated),
        ),
        no_place=without_place(after, lambda key: key not in left_before),
        owners=_changes(_by_owner(before.plan), _by_owner(after.plan)),
        workloads=_changes(_by_workload(before), _by_workload(after)),
    )


def _placed(plan: Plan) -> list[tuple[PodRef, ...]]:
    """Return the pods of each node that gets some."""
    return [*(node.pods for node in plan.nodes), *(there.pods for there in plan.placements)]


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
    pods = {pod.uid: workload_of(pod) for pod in planned.snapshot.pending}
    placed = Counter(pods[ref.uid] for part in _placed(planned.plan) for ref in part)
    costs = workload_costs(planned)
    return {name: (count, costs.get(name, 0)) for name, count in placed.items()}


def _changes(before: _Figures, after: _Figures) -> tuple[Change, ...]:
    nothing = (0, 0)
    found = []
    for name in {*before, *after}:
        old, new = before.get(name, nothing), after.get(name, nothing)
        if old[0] != new[0] or abs(new[1] - old[1]) >= _LEAST_MICROS:
            found.append(Change(name=name, count=(old[0], new[0]), cost=(old[1], new[1])))
    return tuple(sorted(found, key=lambda one: (one.cost[0] - one.cost[1], one.name)))
