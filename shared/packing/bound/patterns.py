"""The bound from patterns: values of pods at which no filled node is worth more than it costs.

Resource prices cannot see that a pod of 64 cores fits only once on a node of 127. The linear
program over all patterns can: each is a bin type with a load of whole pods (`pattern_basis`). Its
dual prices, one per class, are a bound when no load is worth more than its bin type costs, which an
exact search proves for each bin type (`whole_loads`).

If the search stops early, the values are scaled down to a valid bound: per class, by the worst
excess of the bin types that it fits (Source: Farley, "A note on bounding a class of linear
programming problems, including cutting stock problems", Operations Research 38, 1990,
https://doi.org/10.1287/opre.38.5.922, read 2026-11-28; there by the worst of all bin types). Values
are computed in floating point and then rounded to integers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Final

from shared.packing.bin_types import BinType
from shared.packing.bound.free_capacity import (
    FreeCapacities,
    FreeCapacity,
    ValueOfCapacity,
    value_beyond,
)
from shared.packing.bound.least_cost import LeastCost, is_close
from shared.packing.bound.listed_loads import ListedLoads
from shared.packing.bound.pattern_basis import PatternBasis, first_basis
from shared.packing.bound.per_bin_type import bin_types_that_fit
from shared.packing.bound.rounding_cuts import with_rounding_cuts
from shared.packing.bound.whole_loads import Knapsack, Needs
from shared.packing.demand import Demand

_SCALE: Final = 1 << 16  # of values, which are integers
# Loads are sought that are worth this much more than their bin type costs, the largest excess
# first.
_EXCESSES: Final = (0.1, 0.03, 0.01, 0.003, 0.001)
# What the proof tries to show of each bin type: that no load is worth more than this times its
# price.
_LADDER: Final = (1.03, 1.01, 1.003, 1.001, 1.0)
_LOAD: Final = 3_000  # microseconds of the search for one load
_LONGER: Final = 500  # the same once one is found
_PROOF: Final = 20_000
_PIVOT: Final = 10.0
_PIVOT_OF_CELL: Final = 0.06
_LEAST_EXCESS: Final = 1e-4  # of listed loads, which are searched quickly
_TO_LIST: Final = 0.2  # of the steps
_TO_IMPROVE: Final = 0.75  # of the steps; the others are left for the proof


class _StepBudget:
    """Steps left, each about a microsecond."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spend(self, steps: float) -> None:
        self._left -= int(steps)

    def ended(self) -> bool:
        return self._left <= 0

    def more(self, steps: int) -> "_StepBudget":
        """Return a budget of what is left and some more."""
        return _StepBudget(max(self._left, 0) + steps)


def pattern_bound(
    demand: Demand,
    counts: Sequence[int],
    bin_types: Sequence[BinType],
    mix: Sequence[tuple[int, float]],
    free_capacities: FreeCapacities,
    most_steps: int,
) -> LeastCost:
    """Return what placing the pods costs at least by true prices.

    Args:
        demand: The classes.
        counts: Pods per class, all of them placed; what fits no bin type is on the bins.
        bin_types: What can be bought; dominated ones may be missing.
        mix: (bin type, how many of it) that a linear program buys, in fractions: see
            `with_rounding_cuts`.
        free_capacities: Capacity that need not be bought.
        most_steps: What it may take, in microseconds, about.
    """
    fits = {k: bin_types_that_fit(demand, k, bin_types) for k, count in enumerate(counts) if count}
    # Pods that may use free capacity may need no node of their own.
    inside = {k for free in free_capacities for k in free.classes}
    alone = {k: mask for k, mask in fits.items() if k not in inside}
    demand, counts, bin_types, more = with_rounding_cuts(demand, counts, bin_types, alone, mix)
    fits |= more
    pods = [(k, counts[k], demand.amounts(k)) for k, mask in sorted(fits.items()) if mask]
    knapsacks = [
        Knapsack(t, bin_type, own)
        for t, bin_type in enumerate(bin_types)
        if (own := [entry for entry in pods if fits[entry[0]] >> t & 1])
    ]
    basis = first_basis(counts, _alone(knapsacks))
    listed = ListedLoads(knapsacks, int(most_steps * _TO_LIST))
    others = [knapsack for knapsack in knapsacks if knapsack.bin_type not in listed.listed]
    steps = _StepBudget(int(most_steps * _TO_IMPROVE) - listed.steps)
    _improve(others, listed, basis, steps)
    values = _proved_values(others, listed, basis, steps.more(int(most_steps * (1 - _TO_IMPROVE))))
    for knapsack in knapsacks if free_capacities else ():
        knapsack.reprice(basis.dual_prices)
    value_of_capacity = _value_of_capacity(knapsacks, values, pods)
    total = value_beyond(values, counts, free_capacities, value_of_capacity)
    best = sum([n * basis.dual_prices[k] for k, n, _ in pods])
    return LeastCost(total // _SCALE, not free_capacities and is_close(total, best * _SCALE))


def _alone(knapsacks: Sequence[Knapsack]) -> dict[int, tuple[float, int, int]]:
    """Return per class its cheapest node of its own: price per pod, bin type, pods per node."""
    found: dict[int, tuple[float, int, int]] = {}
    for knapsack in knapsacks:
        for k, n in zip(knapsack.classes, knapsack.most, strict=True):
            choice = (knapsack.price / n, knapsack.bin_type, n)
            found[k] = min(found.get(k, choice), choice)
    return found


def _improve(
    knapsacks: Sequence[Knapsack], listed: ListedLoads, basis: PatternBasis, steps: _StepBudget
) -> None:
    """Enter loads worth more than their bin type costs, while there are any and steps are left."""
    _improve_by_listed(listed, basis, steps)
    for excess in _EXCESSES:
        at = idle = 0
        while idle < len(knapsacks) and not steps.ended():
            knapsack = knapsacks[at]
            at = (at + 1) % len(knapsacks)
            idle += 1
            load = _load(knapsack, basis.dual_prices, excess, steps)
            if load:
                idle = 0
                _enter(basis, knapsack.bin_type, load, knapsack.price, steps)
                if not at:
                    _improve_by_listed(listed, basis, steps)
        _improve_by_listed(listed, basis, steps)


def _improve_by_listed(listed: ListedLoads, basis: PatternBasis, steps: _StepBudget) -> None:
    """Enter listed loads, the best first."""
    while listed.loads and not steps.ended():
        ratio, best = listed.best(basis.dual_prices)
        steps.spend(listed.steps_of_best)
        if ratio <= 1 + _LEAST_EXCESS:
            return
        load = Counter(listed.loads[best])
        _enter(basis, listed.bin_types[best], load, listed.prices[best], steps)


def _enter(
    basis: PatternBasis, bin_type: int, load: Mapping[int, int], price: int, steps: _StepBudget
) -> None:
    value = sum([n * basis.dual_prices[k] for k, n in load.items()])
    basis.enter(bin_type, load, price - value)
    pivots = 1 + basis.add_slack_columns(price)
    steps.spend(pivots * (_PIVOT + _PIVOT_OF_CELL * len(basis.rows) ** 2))


def _load(
    knapsack: Knapsack, values: Sequence[float], excess: float, steps: _StepBudget
) -> dict[int, int]:
    """Return a load worth that much more than its bin type costs, empty where none was found."""
    above = knapsack.price * (1 + excess)
    if knapsack.fractional_value(values) <= above:
        return {}
    knapsack.reprice(values)
    steps.spend(knapsack.steps_of_pricing)
    if knapsack.fractional_value(values) <= above:
        return {}
    most = _LOAD if excess > _EXCESSES[-1] else _PROOF
    found = knapsack.best_load(_scaled(values), int(above * _SCALE), most, _LONGER)
    steps.spend(found.steps)
    return found.contents


def _scaled(values: Sequence[float]) -> list[int]:
    return [max(int(value * _SCALE), 0) for value in values]


def _proved_values(
    knapsacks: Sequence[Knapsack], listed: ListedLoads, basis: PatternBasis, steps: _StepBudget
) -> list[int]:
    """Return integer values at which no load is worth more than its bin type costs."""
    values = _scaled(basis.dual_prices)
    proved = list(values)
    for load, each in zip(listed.loads, listed.prices, strict=True):
        price, value = each * _SCALE, sum(map(values.__getitem__, load))
        if value > price:
            for k in load:
                proved[k] = min(proved[k], values[k] * price // value)
    for knapsack in knapsacks:
        knapsack.reprice(basis.dual_prices)
        steps.spend(knapsack.steps_of_pricing)
        price = knapsack.price * _SCALE
        most = _value_bound(knapsack, values, price, steps)
        if most > price:
            for k in knapsack.classes:
                proved[k] = min(proved[k], values[k] * price // most)
    return proved


def _value_bound(knapsack: Knapsack, values: Sequence[int], price: int, steps: _StepBudget) -> int:
    """Return an upper bound on the value of a bin type's loads, as close as the steps allow."""
    most = 0
    for times in _LADDER:
        above = int(price * times)
        if 0 < most <= above:
            continue
        found = knapsack.best_load(values, above, 0 if steps.ended() else _PROOF)
        steps.spend(found.steps)
        most = min(most or found.value_bound, found.value_bound)
        if found.contents or not found.is_complete:
            break
    return most


def _value_of_capacity(
    knapsacks: Sequence[Knapsack], values: Sequence[int], pods: Sequence[tuple[int, int, Needs]]
) -> ValueOfCapacity:
    """Return a function: an upper bound on the value of free capacity to some classes.

    Any weights of resources are valid: no filling weighs more than the capacity, nor is any pod
    worth more per weight than the best one. Those by which bin types are priced are tried.
    """
    needs = {k: amounts for k, _, amounts in pods}
    weightings = [dict(knapsack.weights()) for knapsack in knapsacks]
    ratios: dict[tuple[int, ...], list[tuple[dict[int, int], Fraction]]] = {}

    def per_weight(some: tuple[int, ...]) -> list[tuple[dict[int, int], Fraction]]:
        found = []
        for weighting in weightings:
            each = [sum([weighting.get(place, 0) * a for place, a in needs[k]]) for k in some]
            if all(each):
                each_worth = [Fraction(values[k], w) for k, w in zip(some, each, strict=True)]
                best = max(each_worth, default=Fraction(0))
                found.append((weighting, best))
        return found

    def value_of_capacity(free: FreeCapacity, some: Sequence[int]) -> int | None:
        key = tuple(some)
        if key not in ratios:
            ratios[key] = per_weight(key)
        values_in_all = [
            best * sum([w * free.amounts[place] for place, w in weighting.items() if place < width])
            for weighting, best in ratios[key]
            for width in [len(free.amounts)]
        ]
        return ceil(min(values_in_all)) if values_in_all else None

    return value_of_capacity
