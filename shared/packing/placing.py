"""Which pods go to nodes that are there already or on their way, before any node is bought."""

from collections.abc import Sequence
from dataclasses import replace

from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import Demand
from shared.packing.free_nodes import Placements, place_on_bins
from shared.packing.machine_kinds import MachineKind
from shared.packing.problem import PackingProblem
from shared.packing.purchase.headroom import find_mix, place_for_growth


def place(
    problem: PackingProblem,
    demand: Demand,
    counts: list[int],
    fitting: Sequence[int],
    kinds: Sequence[MachineKind],
) -> Placements:
    """Return what goes to the bins, pods first that no node to buy could hold.

    Args:
        problem: Its bins and who may run on them.
        demand: The classes.
        counts: Pods per class; what is placed is taken off.
        fitting: Pods per class that fit some kind, 0 for the others.
        kinds: What can be bought.
    """

    def on_bins(asked: PackingProblem, some: list[int]) -> Placements:
        worth = find_prices(demand, fitting, kinds, [kind.planning_price for kind in kinds])
        values = [worth.of_class(demand, k) for k in range(len(some))]
        return place_on_bins(asked, demand, some, values)

    bound = [0 if fits else count for count, fits in zip(counts, fitting, strict=True)]
    first = on_bins(problem, bound) if any(bound) else ()
    problem = _without(problem, first)
    left = list(fitting)
    mix = find_mix(problem, demand, fitting, kinds)
    second = place_for_growth(problem, demand, left, mix) if mix else None
    if second is None:
        second = on_bins(problem, left)
    counts[:] = [n + m for n, m in zip(bound, left, strict=True)]
    return _together(first, second)


def _without(problem: PackingProblem, placements: Placements) -> PackingProblem:
    """Return the problem with the room left on its bins."""
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
