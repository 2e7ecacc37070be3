"""The bound is within 1 % of the linear programme over all patterns, and never above a plan.

The programme is made here, by enumeration, and solved by HiGHS: it knows nothing of the planner.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import highspy
import numpy as np
import pytest

from shared.packing.best_bound import least_cost
from shared.packing.packer import pack
from shared.packing.problem import ItemClass, NodeType, PackingProblem
from tests.unit.packing.packing_cases import amounts, shape
from tests.unit.packing.packing_cases import problem as packing_problem

_FEW: Final = 20
_MANY: Final = 1_000
_MOST_PATTERNS: Final = 12_000
# Classes at most, and how many times smaller than the largest pod the least may be: what can be
# enumerated.
_FINENESS: Final = ((2, 1_920), (5, 8), (10, 4), (20, 3), (40, 2))
# Of a GPU, in thousandths: a share of one, one, many.
_GPUS: Final = (125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000)
_GPU: Final = "example_com__gpu-thousandths"
_NAMES: Final = ("cpu", "memory", "pods", "example.com/gpu-thousandths")


def catalogue(rng: random.Random) -> list[NodeType]:
    """Return 20 to 900 types at prices of any order."""
    unit = 10 ** rng.uniform(3.0, 6.0)
    spread = rng.choice((0.0, 0.05, 0.5, 1.5))
    gpus = rng.choice((0.0, 0.2, 0.6))
    found = []
    for number in range(rng.randint(20, 900)):
        cores = rng.choice((1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192))
        gib = max(round(cores * rng.choice((0.5, 2, 4, 8, 16)) * rng.uniform(0.85, 1.0)), 1)
        price = unit * (cores + gib / 8)
        more: dict[str, Any] = {}
        if rng.random() < gpus:
            more = {_GPU: rng.choice(_GPUS)}
            price += unit * 0.02 * more[_GPU]
        price *= rng.lognormvariate(0.0, spread)
        pods = rng.choice((8, 29, 110, 234))
        found.append(
            shape(f"t{number}", max(round(price), 1), cores=cores, gib=gib, pods=pods, **more)
        )
    return found


def workload(rng: random.Random) -> list[ItemClass]:
    """Return 1 to 40 classes of pods of 0.1 to 192 cores; of many, so large that few fit a node."""
    many = rng.randint(1, rng.choice((2, 5, 10, 20, 40)))
    largest = rng.choice((4, 24, 96, 192))
    least = max(largest / rng.randint(1, next(n for most, n in _FINENESS if many <= most)), 0.1)
    most = rng.choice((3, 30, 300))
    gpus = rng.choice((0.0, 0.0, 0.5))
    found = []
    for _ in range(many):
        cpu = max(round(rng.uniform(least, largest) * 10) * 100, 100)
        gib = max(round(cpu / 1000 * rng.uniform(0.5, 10) * 4) / 4, 0.25)
        more = {_GPU: rng.choice(_GPUS)} if rng.random() < gpus else {}
        found.append(ItemClass(requests=amounts(cpu, gib, 1, **more), count=rng.randint(1, most)))
    return found


def drawn(seed: int) -> tuple[PackingProblem, list[tuple[int, tuple[int, ...]]]]:
    """Return the first problem of a seed whose patterns can be enumerated, and the patterns."""
    rng = random.Random(seed)
    while True:
        largest = rng.choice((8, 48, 192))
        shapes = [each for each in catalogue(rng) if each.vcpus <= largest]
        classes = [
            pod_class
            for pod_class in workload(rng)
            if any(pod_class.requests.fits(each.allocatable) for each in shapes)
        ]
        found = patterns(classes, shapes) if classes else None
        if found:
            return packing_problem(classes, shapes), found


def patterns(
    classes: Sequence[ItemClass], shapes: Sequence[NodeType]
) -> list[tuple[int, tuple[int, ...]]] | None:
    """Return (price, pods per class) of all nodes that hold no further pod; None if too many."""
    asked = [[entry.requests[name] for name in _NAMES] for entry in classes]
    rooms: list[tuple[int, list[int]]] = []
    for each in sorted(shapes, key=lambda each: each.offerings[0].price_micros_per_hour):
        room = [each.allocatable[name] for name in _NAMES]
        if not any(all(map(int.__ge__, other, room)) for _, other in rooms):
            rooms.append((each.offerings[0].price_micros_per_hour, room))
    found: dict[tuple[int, ...], int] = {}
    looks = 0
    for price, room in rooms:
        for load in loads(asked, [entry.count for entry in classes], room):
            looks += 1
            if looks > _MOST_PATTERNS:
                return None
            found.setdefault(load, price)
    return [(price, load) for load, price in found.items() if any(load)]


def loads(
    asked: Sequence[Sequence[int]], counts: Sequence[int], room: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Yield what a node can hold that no further pod of the last classes fits beside."""
    if not asked:
        yield ()
        return
    needs = asked[0]
    most = min([counts[0], *[have // need for have, need in zip(room, needs, strict=True) if need]])
    least = most if len(asked) == 1 else 0
    for n in range(most, least - 1, -1):
        left = [have - n * need for have, need in zip(room, needs, strict=True)]
        for rest in loads(asked[1:], counts[1:], left):
            yield (n, *rest)


def least(
    classes: Sequence[ItemClass], found: Sequence[tuple[int, tuple[int, ...]]], *, whole: bool
) -> float:
    """Return the least price of patterns for all pods: of parts of them, or of a plan.

    The plan is the cheapest found in a few seconds: a bound is at most its price in any case.
    """
    make: Callable[[], highspy.Highs] = highspy.Highs  # its own hints leave this one out
    solver = make()
    solver.silent()
    solver.setOptionValue("time_limit", 5.0)
    for price, _ in found:
        solver.addVar(0.0, highspy.kHighsInf)
        solver.changeColCost(solver.getNumCol() - 1, float(price))
    for k, pod_class in enumerate(classes):
        of_class = [(p, load[k]) for p, (_, load) in enumerate(found) if load[k]]
        columns = np.array([p for p, _ in of_class], dtype=np.int32)
        numbers = np.array([n for _, n in of_class], dtype=np.float64)
        solver.addRow(float(pod_class.count), highspy.kHighsInf, len(of_class), columns, numbers)
    if whole:
        for p in range(len(found)):
            solver.changeColIntegrality(p, highspy.HighsVarType.kInteger)
    solver.run()
    return float(solver.getInfo().objective_function_value)


def wrong(seeds: Sequence[int]) -> list[str]:
    """Return the problems whose bound is far from the programme, or above a plan."""
    told = []
    for seed in seeds:
        asked, found = drawn(seed)
        made = pack(asked, bounded=False)
        bound = least_cost(
            asked, [entry.count for entry in asked.classes], made.cost_micros_per_hour
        )
        programme = least(asked.classes, found, whole=False)
        if not programme * 0.99 <= bound.micros_per_hour <= made.cost_micros_per_hour:
            told.append(f"seed {seed}: {programme:.0f}, {bound}, {made.cost_micros_per_hour}")
        if bound.micros_per_hour > programme * 1.000001:
            plan = least(asked.classes, found, whole=True)
            if bound.micros_per_hour > plan * 1.000001:
                told.append(f"seed {seed}: {bound} is above a plan of {plan:.0f}")
    return told


def test_the_bound_is_near_the_programme_over_all_patterns_and_never_above_a_plan() -> None:
    assert wrong(range(_FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(_FEW, _MANY, _FEW))
def test_so_it_is_for_a_thousand_problems(first: int) -> None:
    assert wrong(range(first, first + _FEW)) == []
