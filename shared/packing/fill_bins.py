"""Which pods go to bins (existing and in-flight nodes), before any node is bought."""

from collections.abc import Sequence

from shared.model.values import replace
from shared.packing.best_fit import Placements, place_best_fit
from shared.packing.bin_types import BinType
from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import Demand
from shared.packing.problem import PackingProblem
from shared.packing.purchase.headroom import find_mix, place_for_growth


def fill_bins(
    problem: PackingProblem,
    demand: Demand,
    counts: list[int],
    fitting: Sequence[int],
    bin_types: Sequence[BinType],
) -> Placements:
    """Return what is placed on the bins, first the pods that no new node could hold.

    Args:
        problem: Its bins and which classes may run on them.
        demand: The classes.
        counts: Pods per class; reduced by what is placed.
        fitting: Pods per class that fit some bin type, 0 for the others.
        bin_types: What can be bought.
    """

    def on_bins(with_free_bins: PackingProblem, some: list[int]) -> Placements:
        value = find_prices(
            demand, fitting, bin_types, [bin_type.comparison_price for bin_type in bin_types]
        )
        values = [value.value_of_class(demand, k) for k in range(len(some))]
        return place_best_fit(with_free_bins, demand, some, values)

    bound = [0 if fits else count for count, fits in zip(counts, fitting, strict=True)]
    first = on_bins(problem, bound) if any(bound) else ()
    problem = _without(problem, first)
    left = list(fitting)
    mix = find_mix(problem, demand, fitting, bin_types)
    second = place_for_growth(problem, demand, left, mix) if mix else None
    if second is None:
        second = on_bins(problem, left)
    counts[:] = [n + m for n, m in zip(bound, left, strict=True)]
    return _together(first, second)


def _without(problem: PackingProblem, placements: Placements) -> PackingProblem:
    """Return the problem with the bins reduced by the placed pods."""
    bins = list(problem.bins)
    for index, contents in placements:
        for k, n in contents:
            bins[index] -= problem.classes[k].requests.times(n)
    return replace(problem, bins=tuple(bins)) if placements else problem


def _together(first: Placements, second: Placements) -> Placements:
    found = {index: list(contents) for index, contents in first}
    for index, contents in second:
        found.setdefault(index, []).extend(contents)
    return tuple((index, tuple(sorted(found[index]))) for index in sorted(found))
