"""A small batch beside many pods that run: what is bought should be of use to those to come.

Pods to come are taken to be like those that run and wait, in the mean: the mix. Free room is worth
as much as the mix it holds, by what it has least of; what it has too much of will be stranded.
So free room is filled with the pods that use up all it has, and a single node may be bought that
is larger than need be, if room on it is worth more than it adds to the price.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.model.resources import CPU, MEMORY
from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import Demand
from shared.packing.free_nodes import Placements, useful_bins
from shared.packing.machine_kinds import MachineKind
from shared.packing.priced_problem import Found, Planned, PricedProblem
from shared.packing.problem import PackingProblem

ROOMY: Final = "roomy"
_MOST_LOOKS: Final = 20_000  # pod by bin
_STRICT: Final = 0.8  # how much of the worth of free room is that of the mix it holds
_PIECES: Final = 0.5  # of its worth, what room is worth that is spread over several nodes
# Exponents of a pod's worth and of the part it takes of what is left: a bin is filled by each pair,
# and the fullest is kept. Without the second the pods worth most come first, whatever they take.
_FILLINGS: Final = ((1.0, 1.0), (1.3, 1.0), (1.0, 1.5), (1.0, 0.0))


class WorkloadMix(NamedTuple):
    """What runs and waits in all.

    Attributes:
        cpu: Millicores, above zero.
        memory: Bytes, above zero.
        cpu_worth: Of all the cpu, in micro-dollars per hour.
        memory_worth: The same of memory.
        budget: What a node may cost beyond what would do, in micro-dollars per hour.
    """

    cpu: int
    memory: int
    cpu_worth: float
    memory_worth: float
    budget: float

    def apart(self, cpu: int, memory: int) -> float:
        """Return what amounts are worth each for itself, in micro-dollars per hour."""
        return cpu / self.cpu * self.cpu_worth + memory / self.memory * self.memory_worth

    def worth(self, cpu: int, memory: int) -> float:
        """Return what free room is worth, in micro-dollars per hour."""
        mixed = min(cpu / self.cpu, memory / self.memory) * (self.cpu_worth + self.memory_worth)
        return _STRICT * mixed + (1 - _STRICT) * self.apart(cpu, memory)


def find_mix(
    problem: PackingProblem, demand: Demand, counts: Sequence[int], kinds: Sequence[MachineKind]
) -> WorkloadMix | None:
    """Return the mix where pods to come matter, else None.

    Args:
        problem: Its settings say how much may be bought for pods to come, and in which batches.
        demand: The classes.
        counts: Pods per class, each of which fits some kind.
        kinds: What can be bought.
    """
    settings = problem.settings
    few = 0 < sum(counts) <= settings.small_batch_pods
    if not (settings.growth_percent and problem.running and few) or problem.limits:
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
    return WorkloadMix(
        cpu=totals[0],
        memory=totals[1],
        cpu_worth=cpu * totals[0],
        memory_worth=memory * totals[1],
        budget=runs * settings.growth_percent / 100,
    )


def place_for_growth(
    problem: PackingProblem, demand: Demand, counts: list[int], mix: WorkloadMix
) -> Placements | None:
    """Return what goes to the bins, or None where that is too much to look at.

    The bins with least room come first; each is filled with what leaves least of it.

    Args:
        problem: Its bins and who may run on them.
        demand: The classes.
        counts: Pods per class; what is placed is taken off.
        mix: Of the pods to come.
    """
    free = useful_bins(problem, demand, counts)
    if len(free) * sum(counts) > _MOST_LOOKS:
        return None
    free.sort(key=lambda entry: (mix.apart(entry[1][0], entry[1][1]), entry[0]))
    worths = [mix.apart(c, m) for c, m in zip(demand.cpu, demand.memory, strict=True)]
    placed: dict[int, dict[int, int]] = {}
    for index, room in free:
        some = [
            k
            for k, count in enumerate(counts)
            if count and problem.compatible_bins[k] >> index & 1 and _fits(demand, k, room)
        ]
        if not some:
            continue
        fillings = [_fill(demand, room, some, counts, worths, powers) for powers in _FILLINGS]
        placed[index] = max(
            fillings, key=lambda contents: sum([worths[k] * n for k, n in contents.items()])
        )
        for k, n in placed[index].items():
            counts[k] -= n
    return tuple((index, tuple(sorted(placed[index].items()))) for index in sorted(placed))


def _fill(
    demand: Demand,
    room: Sequence[int],
    some: Sequence[int],
    counts: Sequence[int],
    worths: Sequence[float],
    powers: tuple[float, float],
) -> dict[int, int]:
    """Return pods per class that fill a bin: always one of the class worth most for its part."""
    left = list(room)
    of_worth, of_part = powers
    contents: dict[int, int] = {}
    while some:
        # A node may have less than nothing of what none of these asks for.
        cpu, memory = max(left[0], 1), max(left[1], 1)
        parts = [(demand.cpu[k] or 1) / cpu + (demand.memory[k] or 1) / memory for k in some]
        scores = [
            worths[k] ** of_worth / part**of_part for k, part in zip(some, parts, strict=True)
        ]
        chosen = some[scores.index(max(scores))]
        contents[chosen] = contents.get(chosen, 0) + 1
        for place, amount in demand.amounts(chosen):
            left[place] -= amount
        some = [k for k in some if counts[k] > contents.get(k, 0) and _fits(demand, k, left)]
    return contents


def _fits(demand: Demand, k: int, room: Sequence[int]) -> bool:
    return all(room[place] >= amount for place, amount in demand.amounts(k))


def roomier(
    problem: PackingProblem,
    priced: PricedProblem,
    found: Found,
    counts: Sequence[int],
    mix: WorkloadMix,
) -> Found:
    """Return a plan of one node with room of use to pods to come, or the one that was found.

    Args:
        problem: What there is to buy, to its full room.
        priced: Classes and kinds.
        found: A plan, the cheapest for these pods alone.
        counts: Pods per class.
        mix: Of the pods to come.
    """
    contents = tuple([(k, count) for k, count in enumerate(counts) if count])
    needs, signatures = priced.needs(contents)
    prices = [kind.planning_price for kind in priced.kinds]
    most = mix.budget + sum([prices[entry.kind] * entry.copies for entry in found.plan])
    scores = [
        (prices[number] - _left_over(problem, kind, needs, mix), number)
        for number, kind in enumerate(priced.kinds)
        if prices[number] <= most
        and not signatures & ~kind.signatures
        and all(a <= b for a, b in zip(needs, kind.room, strict=True))
    ]
    if not scores or _score(problem, priced, found, mix) <= min(scores)[0]:
        return found
    plan = [Planned(kind=min(scores)[1], contents=contents)]
    return Found(priced=priced, plan=plan, name=ROOMY, tight=None)


def _score(problem: PackingProblem, priced: PricedProblem, found: Found, mix: WorkloadMix) -> float:
    """Return a plan's price less what its free room is worth to pods to come."""
    total = 0.0
    for entry in found.plan:
        kind = priced.kinds[entry.kind]
        left = _left_over(problem, kind, priced.needs(entry.contents)[0], mix)
        total += entry.copies * (kind.planning_price - _PIECES * left)
    return total


def _left_over(
    problem: PackingProblem, kind: MachineKind, needs: Sequence[int], mix: WorkloadMix
) -> float:
    # A kind's room is without what these pods can never use; others can.
    whole = problem.shapes[kind.shapes[0]].allocatable
    return mix.worth(whole[CPU] - needs[0], whole[MEMORY] - needs[1])
