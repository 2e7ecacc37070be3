"""A handful of pods beside many that run: what is bought should be of use to those to come.

Pods to come are taken to be like those that run and wait, in the mean: the mix. Free room is worth
as much as the mix it holds, by what it has least of; what it has too much of will be stranded.
So a pod goes to the node where it takes least of that away, and of the nodes that could be bought
the one is taken whose price less such worth is least, within a small part of what runs.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.model.resources import CPU, MEMORY
from shared.packing.bins import Placements, useful_bins
from shared.packing.bound import find_prices
from shared.packing.demand import Demand
from shared.packing.ground import Found, Ground, Planned
from shared.packing.market import Kind
from shared.packing.problem import PackingProblem

ROOMY: Final = "roomy"
_FEW_PODS: Final = 20  # with more, a node that fits them all is large enough
_MOST_LOOKS: Final = 20_000  # pod by bin
_FULLER: Final = 0.02  # of equal bins, the fuller one
_STRICT: Final = 0.8  # how much of the worth of free room is that of the mix it holds


class Mix(NamedTuple):
    """What runs and waits in all.

    Attributes:
        cpu: Millicores, above zero.
        memory: Bytes, above zero.
        cpu_worth: Of all the cpu, in micro-dollars per hour.
        memory_worth: The same of memory.
        budget: What a node may cost, though a smaller one would do, in micro-dollars per hour.
    """

    cpu: int
    memory: int
    cpu_worth: float
    memory_worth: float
    budget: float

    def parts(self, cpu: int, memory: int) -> tuple[float, float]:
        """Return amounts as parts of the whole."""
        return cpu / self.cpu, memory / self.memory

    def worth(self, cpu: int, memory: int) -> float:
        """Return what free room is worth, in micro-dollars per hour."""
        some_cpu, some_memory = self.parts(cpu, memory)
        mixed = min(some_cpu, some_memory) * (self.cpu_worth + self.memory_worth)
        single = some_cpu * self.cpu_worth + some_memory * self.memory_worth
        return _STRICT * mixed + (1 - _STRICT) * single


def find_mix(
    problem: PackingProblem, demand: Demand, counts: Sequence[int], kinds: Sequence[Kind]
) -> Mix | None:
    """Return the mix where pods to come matter, else None.

    Args:
        problem: Its settings say how much may be bought for pods to come.
        demand: The classes.
        counts: Pods per class, each of which fits some kind.
        kinds: What can be bought.
    """
    percent = problem.settings.growth_percent
    if not (percent and problem.running and 0 < sum(counts) <= _FEW_PODS) or problem.limits:
        return None
    totals = [
        problem.running[name] + sum([n * a for n, a in zip(counts, column, strict=True)])
        for name, column in ((CPU, demand.cpu), (MEMORY, demand.memory))
    ]
    if not all(totals):
        return None
    most = max(range(len(counts)), key=lambda k: counts[k])
    whole = demand._replace(
        cpu=(totals[0],),
        memory=(totals[1],),
        pods=(0,),
        extras=((),),
        signature=(demand.signature[most],),
    )
    worth = find_prices(whole, [1], kinds, [kind.planning_price for kind in kinds])
    cpu, memory, *_ = worth.values[0]
    runs = cpu * problem.running[CPU] + memory * problem.running[MEMORY]
    return Mix(
        cpu=totals[0],
        memory=totals[1],
        cpu_worth=cpu * totals[0],
        memory_worth=memory * totals[1],
        budget=runs * percent / 100,
    )


def place_for_growth(
    problem: PackingProblem, demand: Demand, counts: list[int], values: Sequence[float], mix: Mix
) -> Placements | None:
    """Return what goes to the bins, or None where that is too much to look at.

    Args:
        problem: Its bins and who may run on them.
        demand: The classes.
        counts: Pods per class; what is placed is taken off.
        values: Worth of one pod per class: those worth most go first.
        mix: Of the pods to come.
    """
    free = useful_bins(problem, demand, counts)
    if len(free) * sum(counts) > _MOST_LOOKS:
        return None
    placed: dict[int, dict[int, int]] = {}
    for k in sorted(range(len(counts)), key=lambda k: (-values[k], k)):
        needs, mask = demand.amounts(k), problem.compatible_bins[k]
        some = [(index, room) for index, room in free if mask >> index & 1]
        while counts[k]:
            fitting = [
                one for one in some if all(one[1][place] >= amount for place, amount in needs)
            ]
            if not fitting:
                break
            index, room = min(fitting, key=lambda one: (_loss(demand, k, one[1], mix), one[0]))
            for place, amount in needs:
                room[place] -= amount
            counts[k] -= 1
            contents = placed.setdefault(index, {})
            contents[k] = contents.get(k, 0) + 1
    return tuple((index, tuple(sorted(placed[index].items()))) for index in sorted(placed))


def _loss(demand: Demand, k: int, room: Sequence[int], mix: Mix) -> float:
    """Return how much less of the mix some room holds with a pod of a class in it."""
    before = min(mix.parts(room[0], room[1]))
    after = min(mix.parts(room[0] - demand.cpu[k], room[1] - demand.memory[k]))
    return before - after + _FULLER * before


def roomier(
    problem: PackingProblem, ground: Ground, found: Found, counts: Sequence[int], mix: Mix
) -> Found:
    """Return a plan of one node with room of use to pods to come, or the one that was found.

    Args:
        problem: What there is to buy, to its full room.
        ground: Classes and kinds.
        found: A plan, the cheapest for these pods alone.
        counts: Pods per class.
        mix: Of the pods to come.
    """
    contents = tuple([(k, count) for k, count in enumerate(counts) if count])
    needs, signatures = ground.needs(contents)
    most = max(
        mix.budget, sum([ground.kinds[one.kind].planning_price * one.copies for one in found.plan])
    )
    scores = []
    for number, kind in enumerate(ground.kinds):
        room = kind.room
        if (
            kind.planning_price <= most
            and not signatures & ~kind.signatures
            and all(a <= b for a, b in zip(needs, room, strict=True))
        ):
            # A kind's room is without what these pods can never use; others can.
            whole = problem.shapes[kind.shapes[0]].allocatable
            left = mix.worth(whole[CPU] - needs[0], whole[MEMORY] - needs[1])
            scores.append((kind.planning_price - left, number))
    if not scores:
        return found
    plan = [Planned(kind=min(scores)[1], contents=contents)]
    return Found(ground=ground, plan=plan, name=ROOMY, tight=None)
