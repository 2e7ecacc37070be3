"""The lower bound of a plan: the best of all bounds, for given pods and free capacity."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.packing.bin_types import BinType, find_bin_types, undominated
from shared.packing.bound.free_capacity import (
    NO_FREE_CAPACITY,
    FreeCapacities,
    find_free_capacities,
    pods_beyond,
)
from shared.packing.bound.least_cost import LeastCost
from shared.packing.bound.resource_prices import ResourcePrices, find_prices, lower_bound
from shared.packing.demand import Demand, read_demand
from shared.packing.exact import cover_exactly, is_small
from shared.packing.priced_problem import price_problem
from shared.packing.problem import PackingProblem, PackingSettings
from shared.packing.usable_capacity import amounts_of

_LOOSE: Final = 1.008  # plan's cost / quick bound, above which the close bound is computed
_VERY_FEW_PODS: Final = 60
_MOST_WORK: Final = 4_000  # bin types times classes, up to which several bounds are computed
# The linear program over patterns has a row per class; the time of a step grows with their square.
_MOST_CLASSES: Final = 130
# Where nodes hold more pods than this on average, resource prices bound as well as patterns do;
# with few classes, only above `_FINE`.
_DENSE: Final = 10
_FEW_CLASSES: Final = 8
_FINE: Final = 45
_FEW_NODES: Final = 16
# Microseconds that the bound from patterns may take, about.
_STEPS: Final = 300_000
_STEPS_PER_PAIR: Final = 200  # of a class and a bin type
_MOST_STEPS: Final = 5_000_000
_BY_PRICE: Final = PackingSettings(
    node_fee_micros_per_hour=0, diversification_k_on_demand=1, diversification_k_spot=1
)


def least_cost(problem: PackingProblem, bought: Sequence[int], cost: int) -> LeastCost:
    """Return a lower bound for any plan that places all pods of a problem.

    Settings and limits do not count: the bound holds for plans by any settings.

    Args:
        problem: Pods that some plan places, where they may run, and the bins.
        bought: Pods per class on the new nodes of that plan.
        cost: What that plan costs.
    """
    if not cost:
        return LeastCost(0, close=True)
    demand = read_demand(problem)
    everything = range(len(problem.node_types))
    amounts = amounts_of(problem.node_types, demand)
    bin_types = undominated(
        find_bin_types(problem, demand, everything, amounts, _BY_PRICE, cap_all=True), {}
    )
    prices = [bin_type.price for bin_type in bin_types]
    counts = counts_that_fit([pod_class.count for pod_class in problem.classes], demand, bin_types)
    free_capacities = find_free_capacities(problem, demand, counts)
    paid = [min(n, count) for n, count in zip(bought, counts, strict=True)]
    variants = [(counts, free_capacities)]
    if free_capacities:
        # Leaving out a class that is placed on existing nodes entirely may give a higher bound; and
        # more is known about pods beyond free capacity than about pods that share it.
        some = [count if n else 0 for n, count in zip(paid, counts, strict=True)]
        beyond = pods_beyond(free_capacities, counts)
        variants += [(some, free_capacities)] if some != counts else []
        variants = [bound_problem for bound_problem in variants if bound_problem[0] != beyond]
        variants.append((beyond, NO_FREE_CAPACITY))
    bound_problems = [
        BoundProblem(
            demand, bin_types, some, find_prices(demand, some, bin_types, prices), capacities
        )
        for some, capacities in variants
        if any(some)
    ]
    # The close bound is computed where the quick one is highest; in all cases if it is fast.
    ranked = sorted(
        ((quick_bound(bound_problem), i) for i, bound_problem in enumerate(bound_problems)),
        reverse=True,
    )
    best = LeastCost(0)
    for number, (quick, i) in enumerate(ranked):
        best = max(best, quick)
        fast = not number or len(bin_types) * len(counts) <= _MOST_WORK
        if fast and is_loose(quick, cost):
            best = max(best, close_bound(bound_problems[i], cost))
    # With free capacity, a bound close to the cost of the pods may be far from the cost of plans.
    return best._replace(close=best.close and not free_capacities).for_plan(cost)


class BoundProblem(NamedTuple):
    """The input of a bound: what do pods cost at least by true prices?

    Attributes:
        demand: The classes.
        bin_types: What can be bought, without bin types that others dominate by true price.
        counts: Pods per class, all of them placed.
        dual_prices: Resource prices by true price.
        free_capacities: Capacity that need not be bought.
    """

    demand: Demand
    bin_types: Sequence[BinType]
    counts: Sequence[int]
    dual_prices: ResourcePrices
    free_capacities: FreeCapacities


def is_loose(bound: LeastCost, cost: int) -> bool:
    """Return whether a closer bound is worth computing, for a plan of some cost."""
    return not bound.exact and cost > bound.micros_per_hour * _LOOSE


def quick_bound(bound_problem: BoundProblem) -> LeastCost:
    """Return what pods cost at least by resource prices; exact for few pods."""
    demand, bin_types, counts, dual_prices, free_capacities = bound_problem
    if not free_capacities and is_small(counts):
        priced = price_problem(
            demand, bin_types, dual_prices, [bin_type.price for bin_type in bin_types]
        )
        exact = cover_exactly(priced, counts)
        if exact is not None:
            return LeastCost(priced.cost(exact), close=True, exact=True)
    return LeastCost(
        lower_bound(demand, counts, bin_types, dual_prices, free_capacities=free_capacities)
    )


def close_bound(bound_problem: BoundProblem, cost: int, fractional: int | None = None) -> LeastCost:
    """Return the best of the bounds that take long, 0 where the quick one is as good.

    Args:
        bound_problem: The input.
        cost: What a plan costs: once a bound is near, no better one is sought.
        fractional: The bound from fractional fillings, if it is known.
    """
    found = LeastCost(_fractional_bound(bound_problem) if fractional is None else fractional)
    return max(found, _by_patterns(bound_problem)) if is_loose(found, cost) else found


def _fractional_bound(bound_problem: BoundProblem) -> int:
    """Return the bound from fractional fillings."""
    demand, bin_types, counts, dual_prices, free_capacities = bound_problem
    if sum(counts) <= _VERY_FEW_PODS and not any(
        demand.extras[k] for k, count in enumerate(counts) if count
    ):
        return 0
    from shared.packing.bound.per_bin_type import bound_per_bin_type  # noqa: PLC0415 -- loaded if needed

    prices = [bin_type.price for bin_type in bin_types]
    return bound_per_bin_type(
        demand, counts, bin_types, prices, mix=dual_prices.mix, free_capacities=free_capacities
    )


def _by_patterns(bound_problem: BoundProblem) -> LeastCost:
    """Return the bound from patterns, 0 with too many classes or too many pods per node."""
    demand, bin_types, counts, dual_prices, free_capacities = bound_problem
    classes, pods = sum([1 for count in counts if count]), sum(counts)
    nodes = sum([many for _, many in dual_prices.mix])
    few = classes <= _FEW_CLASSES
    most_pods = max(nodes, _FEW_NODES) * _FINE if few else nodes * _DENSE
    # A few pods beside free capacity: a bound for them is not worth its time.
    if classes > _MOST_CLASSES or pods > most_pods or (free_capacities and pods <= _VERY_FEW_PODS):
        return LeastCost(0)
    from shared.packing.bound.patterns import pattern_bound  # noqa: PLC0415 -- loaded if needed

    most_steps = min(_STEPS + _STEPS_PER_PAIR * classes * len(bin_types), _MOST_STEPS)
    return pattern_bound(demand, counts, bin_types, dual_prices.mix, free_capacities, most_steps)


def counts_that_fit(
    counts: Sequence[int], demand: Demand, bin_types: Sequence[BinType]
) -> list[int]:
    """Return the counts of the classes that fit some bin type, zero for the others."""
    order = sorted(bin_types, key=lambda bin_type: bin_type.allocatable, reverse=True)
    found = []
    for k, count in enumerate(counts):
        needs = demand.amounts(k) if count else []
        fits = count and any(
            bin_type.signatures >> demand.signature[k] & 1
            and all(amount <= bin_type.allocatable[place] for place, amount in needs)
            for bin_type in order
        )
        found.append(count if fits else 0)
    return found
