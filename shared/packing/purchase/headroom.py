"""Headroom: beside many running pods, the nodes for a small batch should suit future pods, too.

Future pods are assumed to be like the running and pending ones, on average: the mix. Free capacity
is worth as much as the mix it holds, by what it has least of; what it has too much of is stranded.
So free capacity is filled with the pods that use up all it has, and a single node may be larger
than needed, if its headroom is worth more than it adds to the price.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.model.resources import CPU, MEMORY
from shared.packing.best_fit import Placements, useful_bins
from shared.packing.bin_types import BinType
from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import Demand
from shared.packing.priced_problem import Pattern, PricedProblem, Solution
from shared.packing.problem import PackingProblem

ROOMY: Final = "roomy"
_MOST_LOOKS: Final = 20_000  # pods times bins
_STRICT: Final = 0.8  # part of the value of free capacity that is the value of the mix it holds
_PIECES: Final = 0.5  # part of its value that free capacity has when spread over several nodes
# Exponents of a pod's value and of the part it takes of what is available: a bin is filled by each
# pair, and the fullest is kept. Without the second, the most valuable pods come first, whatever
# they take.
_FILLINGS: Final = ((1.0, 1.0), (1.3, 1.0), (1.0, 1.5), (1.0, 0.0))


class WorkloadMix(NamedTuple):
    """All running and pending pods together.

    Attributes:
        cpu: Millicores, above zero.
        memory: Bytes, above zero.
        cpu_value: Value of all the cpu, in micro-dollars per hour.
        memory_value: The same for memory.
        budget: How much more than needed a node may cost, in micro-dollars per hour.
    """

    cpu: int
    memory: int
    cpu_value: float
    memory_value: float
    budget: float

    def separate_value(self, cpu: int, memory: int) -> float:
        """Return the value of amounts, each by itself, in micro-dollars per hour."""
        return cpu / self.cpu * self.cpu_value + memory / self.memory * self.memory_value

    def value(self, cpu: int, memory: int) -> float:
        """Return the value of free capacity, in micro-dollars per hour."""
        mixed = min(cpu / self.cpu, memory / self.memory) * (self.cpu_value + self.memory_value)
        return _STRICT * mixed + (1 - _STRICT) * self.separate_value(cpu, memory)


def find_mix(
    problem: PackingProblem, demand: Demand, counts: Sequence[int], bin_types: Sequence[BinType]
) -> WorkloadMix | None:
    """Return the mix where future pods matter, else None.

    Args:
        problem: Its settings say how much may be bought for future pods, and in which batches.
        demand: The classes.
        counts: Pods per class, each of which fits some bin type.
        bin_types: What can be bought.
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
    dual_prices = find_prices(
        whole, [1], bin_types, [bin_type.comparison_price for bin_type in bin_types]
    )
    cpu, memory, *_ = dual_prices.values[0]
    runs = cpu * problem.running[CPU] + memory * problem.running[MEMORY]
    return WorkloadMix(
        cpu=totals[0],
        memory=totals[1],
        cpu_value=cpu * totals[0],
        memory_value=memory * totals[1],
        budget=runs * settings.growth_percent / 100,
    )


def place_for_growth(
    problem: PackingProblem, demand: Demand, counts: list[int], mix: WorkloadMix
) -> Placements | None:
    """Return what is placed on the bins, or None where there is too much to try.

    The bins with least available come first; each is filled so that least is left.

    Args:
        problem: Its bins and which classes may run on them.
        demand: The classes.
        counts: Pods per class; reduced by what is placed.
        mix: Of the future pods.
    """
    free = useful_bins(problem, demand, counts)
    if len(free) * sum(counts) > _MOST_LOOKS:
        return None
    free.sort(key=lambda entry: (mix.separate_value(entry[1][0], entry[1][1]), entry[0]))
    values = [mix.separate_value(c, m) for c, m in zip(demand.cpu, demand.memory, strict=True)]
    placed: dict[int, dict[int, int]] = {}
    for index, available in free:
        some = [
            k
            for k, count in enumerate(counts)
            if count and problem.compatible_bins[k] >> index & 1 and _fits(demand, k, available)
        ]
        if not some:
            continue
        fillings = [_fill(demand, available, some, counts, values, powers) for powers in _FILLINGS]
        placed[index] = max(
            fillings, key=lambda contents: sum([values[k] * n for k, n in contents.items()])
        )
        for k, n in placed[index].items():
            counts[k] -= n
    return tuple((index, tuple(sorted(placed[index].items()))) for index in sorted(placed))


def _fill(
    demand: Demand,
    available: Sequence[int],
    some: Sequence[int],
    counts: Sequence[int],
    values: Sequence[float],
    powers: tuple[float, float],
) -> dict[int, int]:
    """Return pods per class that fill a bin, one by one, highest value for its part first."""
    left = list(available)
    of_worth, of_part = powers
    contents: dict[int, int] = {}
    while some:
        # A node may have a negative amount of what none of these requests.
        cpu, memory = max(left[0], 1), max(left[1], 1)
        parts = [(demand.cpu[k] or 1) / cpu + (demand.memory[k] or 1) / memory for k in some]
        scores = [
            values[k] ** of_worth / part**of_part for k, part in zip(some, parts, strict=True)
        ]
        chosen = some[scores.index(max(scores))]
        contents[chosen] = contents.get(chosen, 0) + 1
        for place, amount in demand.amounts(chosen):
            left[place] -= amount
        some = [k for k in some if counts[k] > contents.get(k, 0) and _fits(demand, k, left)]
    return contents


def _fits(demand: Demand, k: int, available: Sequence[int]) -> bool:
    return all(available[place] >= amount for place, amount in demand.amounts(k))


def with_headroom(
    problem: PackingProblem,
    priced: PricedProblem,
    found: Solution,
    counts: Sequence[int],
    mix: WorkloadMix,
) -> Solution:
    """Return a plan of one node with headroom for future pods, or the one that was found.

    Args:
        problem: What can be bought, with its full allocatable.
        priced: Classes and bin types.
        found: A plan, the cheapest for these pods alone.
        counts: Pods per class.
        mix: Of the future pods.
    """
    contents = tuple([(k, count) for k, count in enumerate(counts) if count])
    needs, signatures = priced.needs(contents)
    prices = [bin_type.comparison_price for bin_type in priced.bin_types]
    most = mix.budget + sum([prices[entry.bin_type] * entry.copies for entry in found.patterns])
    scores = [
        (prices[number] - _left_over(problem, bin_type, needs, mix), number)
        for number, bin_type in enumerate(priced.bin_types)
        if prices[number] <= most
        and not signatures & ~bin_type.signatures
        and all(a <= b for a, b in zip(needs, bin_type.allocatable, strict=True))
    ]
    if not scores or _score(problem, priced, found, mix) <= min(scores)[0]:
        return found
    patterns = [Pattern(bin_type=min(scores)[1], contents=contents)]
    return Solution(priced=priced, patterns=patterns, procedure=ROOMY, lower_bound=None)


def _score(
    problem: PackingProblem, priced: PricedProblem, found: Solution, mix: WorkloadMix
) -> float:
    """Return a plan's price less the value of its free capacity to future pods."""
    total = 0.0
    for entry in found.patterns:
        bin_type = priced.bin_types[entry.bin_type]
        left = _left_over(problem, bin_type, priced.needs(entry.contents)[0], mix)
        total += entry.copies * (bin_type.comparison_price - _PIECES * left)
    return total


def _left_over(
    problem: PackingProblem, bin_type: BinType, needs: Sequence[int], mix: WorkloadMix
) -> float:
    # A bin type's allocatable is without what these pods can never use; others can.
    whole = problem.node_types[bin_type.node_types[0]].allocatable
    return mix.value(whole[CPU] - needs[0], whole[MEMORY] - needs[1])
