"""The tighter bound, where pods are diverse: each gets all that it requests from one node.

The linear program of `resource_prices` lets a pod take cpu from one node and memory from another.
Here every bin type has resource prices of its own: the value of a pod is its lowest price on any
bin type that it fits, and no bin type's allocatable is worth more than the bin type costs. For any
such prices, the value of the pods is a lower bound. Good prices come from a linear program over
clusters of similar classes, whose columns are fractional fillings of a bin type; a rough program
only makes the bound weaker, never wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from math import log2
from typing import Final

from shared.packing.bin_types import BinType
from shared.packing.bound.free_capacity import (
    NO_FREE_CAPACITY,
    FreeCapacities,
    FreeCapacity,
    value_beyond,
)
from shared.packing.bound.linear_program import enter_column, solve_by_simplex
from shared.packing.bound.rounding_cuts import with_rounding_cuts
from shared.packing.demand import Demand

_SCALE: Final = 1 << 80
_MOST_CLUSTERS: Final = 40
_FEW_CLUSTERS: Final = 16
_FILLINGS: Final = 900
_MOST_ROWS: Final = 24  # the time of a step grows with their square
_STEPS: Final = (4.0, 2.0, 1.0, 0.0)  # steps per doubling of memory per cpu that tell classes apart
_FINEST: Final = [(True, _STEPS[0])]


def bound_per_bin_type(
    demand: Demand,
    counts: Sequence[int],
    bin_types: Sequence[BinType],
    costs: Sequence[int],
    *,
    mix: Sequence[tuple[int, float]] = (),
    free_capacities: FreeCapacities = NO_FREE_CAPACITY,
) -> int:
    """Return what placing the pods costs at least, in micro-dollars per hour, rounded down.

    Args:
        demand: The classes.
        counts: Pods per class, all of them placed; what fits no bin type is on the bins.
        bin_types: What can be bought; dominated ones may be missing.
        costs: Price per bin type.
        mix: (bin type, how many of it) that the linear program of `resource_prices` buys, in
            fractions: where whole nodes are more than these, the bound can be better.
        free_capacities: Capacity that need not be bought.
    """
    asking = [k for k, count in enumerate(counts) if count]
    if _too_many_proportions(demand, asking):
        return 0
    fits: Mapping[int, int] = {k: bin_types_that_fit(demand, k, bin_types) for k in asking}
    present = [k for k, mask in fits.items() if mask]
    clusters = _clusters(demand, present, fits)
    if not clusters:
        return 0
    if mix:
        # Pods that may use free capacity may need no node of their own.
        inside = {k for free in free_capacities for k in free.classes}
        alone = {k: mask for k, mask in fits.items() if k not in inside}
        real = len(counts)
        demand, counts, bin_types, whole = with_rounding_cuts(demand, counts, bin_types, alone, mix)
        fits = {**fits, **whole}
        imagined = range(real, len(counts))
        clusters = [*clusters, *([k] for k in imagined)]
        present = [*present, *imagined]
    prices = _prices_per_bin_type(demand, counts, clusters, fits, bin_types, costs)
    exact = [
        _scaled(price, bin_type, cost)
        for price, bin_type, cost in zip(prices, bin_types, costs, strict=True)
    ]
    values = [0] * len(counts)
    for k in present:
        needs = demand.amounts(k)
        values[k] = min(
            [
                sum([exact[t][place] * amount for place, amount in needs])
                for t in range(len(bin_types))
                if fits[k] >> t & 1
            ]
        )

    def value_of_capacity(free: FreeCapacity, some: Sequence[int]) -> int | None:
        """Return the lowest value of the capacity at prices of a bin type that all classes fit."""
        everybody = (1 << len(bin_types)) - 1
        for k in some:
            everybody &= fits[k]
        worths = [
            sum([price * amount for price, amount in zip(exact[t], free.amounts, strict=False)])
            for t in range(len(bin_types))
            if everybody >> t & 1
        ]
        return min(worths, default=None)

    return value_beyond(values, counts, free_capacities, value_of_capacity) // _SCALE


def bin_types_that_fit(demand: Demand, k: int, bin_types: Sequence[BinType]) -> int:
    """Return the bin types that hold one pod of a class, as a mask."""
    needs, signature = demand.amounts(k), demand.signature[k]
    mask = 0
    for t, bin_type in enumerate(bin_types):
        allocatable = bin_type.allocatable
        if bin_type.signatures >> signature & 1 and all(
            amount <= allocatable[p] for p, amount in needs
        ):
            mask |= 1 << t
    return mask


def _too_many_proportions(demand: Demand, asking: Sequence[int]) -> bool:
    """Return whether the classes are too many clusters whatever bin types they fit.

    For many classes of all proportions without extras, the simpler linear program is as good.
    """
    if any(demand.extras[k] for k in asking):
        return False
    return len({_proportion(demand, k, _STEPS[0]) for k in asking}) > _FEW_CLUSTERS


def _proportion(demand: Demand, k: int, steps: float) -> int:
    ratio = log2((demand.memory[k] + 1) / (demand.cpu[k] + 1) / 2**20)
    return round(ratio * steps)


def _clusters(demand: Demand, present: Sequence[int], fits: Mapping[int, int]) -> list[list[int]]:
    """Return similar classes together, as finely as the number of clusters allows."""
    extras = any(demand.extras[k] for k in present)
    most = _MOST_CLUSTERS if extras else _FEW_CLUSTERS
    levels_of_detail = (
        [(exact, steps) for exact in (True, False) for steps in _STEPS] if extras else _FINEST
    )
    for exact, steps in levels_of_detail:
        found: dict[tuple[object, ...], list[int]] = {}
        for k in present:
            who = fits[k] if exact else (demand.signature[k], demand.extras[k])
            found.setdefault((who, _proportion(demand, k, steps)), []).append(k)
        if len(found) <= most:
            return list(found.values())
    return []


def _prices_per_bin_type(
    demand: Demand,
    counts: Sequence[int],
    clusters: Sequence[Sequence[int]],
    fits: Mapping[int, int],
    bin_types: Sequence[BinType],
    prices: Sequence[int],
) -> list[list[float]]:
    """Return resource prices per bin type, from fractional fillings with whole clusters.

    The rows are the clusters, each needed once; a basis of one filling per cluster is improved
    while some bin type can be filled with more value than it costs.
    """
    tops = [
        max(column) or 1
        for column in zip(*[bin_type.allocatable for bin_type in bin_types], strict=True)
    ]
    amounts = [_amounts(demand, counts, cluster, tops) for cluster in clusters]
    masks = [_all_fit(cluster, fits) for cluster in clusters]
    scaled_allocatable = [
        [a / top for a, top in zip(bin_type.allocatable, tops, strict=True)]
        for bin_type in bin_types
    ]
    fillings = [
        _best_filling(masks, amounts, t, scaled_allocatable[t]) for t in range(len(bin_types))
    ]
    size = len(clusters)
    costs = [
        min(
            [
                _per_cluster(amounts[g], scaled_allocatable[t]) * prices[t]
                for t in range(len(bin_types))
                if mask >> t & 1
            ]
        )
        for g, mask in enumerate(masks)
    ]
    inverse = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    levels = [1.0] * size
    values = list(costs)
    duals: list[list[float]] = [[] for _ in bin_types]
    idle = 0
    for number in range(_FILLINGS):
        if idle == len(bin_types):
            break
        t = number % len(bin_types)
        mix, duals[t] = fillings[t](values)
        value = sum([values[g] * part for g, part in mix])
        if value <= prices[t] * (1 + 1e-6):
            idle += 1
            continue
        idle = 0
        leaving = enter_column(inverse, levels, mix)
        costs[leaving] = float(prices[t])
        values = [
            max(sum([costs[i] * inverse[i][j] for i in range(size)]), 0.0) for j in range(size)
        ]
    if idle < len(bin_types):
        duals = [fill(values)[1] for fill in fillings]
    return [[d / top for d, top in zip(dual, tops, strict=True)] for dual in duals]


def _best_filling(
    masks: Sequence[int],
    amounts: Sequence[Sequence[float]],
    bin_type: int,
    allocatable: Sequence[float],
) -> Callable[[Sequence[float]], tuple[list[tuple[int, float]], list[float]]]:
    """Return a function from the clusters' values to the best filling of a bin type.

    That is (cluster, part of it) of the clusters that fit it, and the dual prices of resources
    then. Where the clusters request many resources (each host port is one), those that they use
    least have no price.
    """
    members = [g for g, mask in enumerate(masks) if mask >> bin_type & 1]
    asked = [amounts[g] for g in members]
    taken = [sum([entry[i] for entry in asked]) / max(r, 1e-9) for i, r in enumerate(allocatable)]
    scarce = nlargest(_MOST_ROWS, range(len(allocatable)), key=taken.__getitem__)
    places = sorted(i for i in scarce if taken[i])
    columns = [[entry[i] for i in places] for entry in asked]
    rows = [allocatable[i] for i in places]

    def fill(values: Sequence[float]) -> tuple[list[tuple[int, float]], list[float]]:
        mix, found = solve_by_simplex([values[g] for g in members], columns, rows)
        duals = [0.0] * len(allocatable)
        for place, dual in zip(places, found, strict=True):
            duals[place] = dual
        return [(members[j], part) for j, part in mix], duals

    return fill


def _amounts(
    demand: Demand, counts: Sequence[int], cluster: Sequence[int], tops: Sequence[int]
) -> list[float]:
    total = [0.0] * len(tops)
    for k in cluster:
        for place, amount in demand.amounts(k):
            total[place] += counts[k] * amount / tops[place]
    return total


def _all_fit(cluster: Sequence[int], fits: Mapping[int, int]) -> int:
    """Return the bin types that all classes of a cluster fit, else those that the first fits."""
    mask = fits[cluster[0]]
    for k in cluster:
        mask &= fits[k]
    return mask or fits[cluster[0]]


def _per_cluster(amounts: Sequence[float], allocatable: Sequence[float]) -> float:
    return max([a / max(r, 1e-9) for a, r in zip(amounts, allocatable, strict=True)])


def _scaled(price: Sequence[float], bin_type: BinType, cost: int) -> list[int]:
    """Return integer prices at which the bin type's allocatable is worth its cost.

    In parts of a micro-dollar (`_SCALE`), rounded down, so never worth more.
    """
    whole = [int(value * _SCALE) for value in price]
    total = sum([value * amount for value, amount in zip(whole, bin_type.allocatable, strict=True)])
    if not total:
        return [0] * len(whole)
    return [value * cost * _SCALE // total for value in whole]
