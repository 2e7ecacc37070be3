"""A plan of the planner beside the best plan there is."""

from collections import Counter
from dataclasses import dataclass

from shared.model.ec2.launches import PodRef
from shared.model.plan import Plan
from shared.planning.decide import decide
from tests.benchmarks.packing.workloads import PLAIN
from tests.property.near.exhaustive import Machine, Search
from tests.property.near.problems import Problem, problem, snapshot


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be said of one plan.

    Attributes:
        left: Pods without a place that the best plan has a place for. Less than nothing where no
            node is bought, and so no zone counts but those with nodes.
        over: How much the plan costs above the best one, in percent, 100 where that costs nothing;
            0 where pods are left: which ones may differ.
        wrong: Pods that would not be accepted at their moment.
    """

    name: str
    left: int
    over: float
    wrong: tuple[str, ...]


def judged(shape: str, number: int) -> Judgement:
    """Return the judgement of the plan for one problem."""
    stated = problem(shape, number)
    plan = decide(snapshot(stated), PLAIN)
    search = Search(stated)
    best = search.best()
    left = len(plan.unschedulable) - best.left
    assert left >= 0 or not plan.nodes
    over = 0.0
    if not plan.unschedulable and plan.cost_micros_per_hour > best.cost:
        over = 100 * (plan.cost_micros_per_hour / best.cost - 1) if best.cost else 100.0
    return Judgement(f"{shape} {number}", left, over, tuple(_wrong(stated, search, plan)))


def _wrong(stated: Problem, search: Search, plan: Plan) -> list[str]:
    search.buys = bool(plan.nodes)
    machines = search.standing()
    where: dict[PodRef, Machine] = {}
    for node in plan.nodes:
        machines.append(search.new(node.options[0].offering.zone, node.provisioner))
        where.update(dict.fromkeys(node.pods, machines[-1]))
    for placement in plan.placements:
        there = machines[int(placement.node.removeprefix("n"))]
        where.update(dict.fromkeys(placement.pods, there))
    found = [f"{ref.name} is twice in the order" for ref, n in Counter(plan.order).items() if n > 1]
    if set(plan.order) != set(where):
        found.append("the order is not of the pods that are placed")
    for ref in plan.order:
        index = int(ref.name.removeprefix("g").partition("-")[0])
        if not search.accepts(machines, where[ref], index):
            found.append(f"{ref.name} in {where[ref].zone}")
        where[ref].holds[index] += 1
    found += [
        f"{number} is too small"
        for number, machine in enumerate(machines)
        if not search.holds(machine)
    ]
    return found
