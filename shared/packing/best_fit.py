"""Best fit: places pods on bins (existing and in-flight nodes), which cost nothing more."""

from collections.abc import Sequence

from shared.packing.demand import Demand
from shared.packing.problem import PackingProblem

Placements = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


def place_best_fit(
    problem: PackingProblem, demand: Demand, counts: list[int], values: Sequence[float]
) -> Placements:
    """Return what is placed on the bins: best fit, most valuable pods first, fullest bins first.

    Args:
        problem: Its bins and which classes may run on them.
        demand: The classes.
        counts: Pods per class; reduced by what is placed.
        values: Value of one pod per class.
    """
    free = useful_bins(problem, demand, counts)
    places = range(len(demand.names))
    tops = [max((available[place] for _, available in free), default=0) or 1 for place in places]
    free.sort(key=lambda item: (sum(item[1][p] / tops[p] for p in (0, 1)), item[0]))
    placed: dict[int, dict[int, int]] = {}
    for k in sorted(range(len(counts)), key=lambda k: (-values[k], k)):
        needs = demand.amounts(k)
        mask = problem.compatible_bins[k] if counts[k] else 0
        if not mask:
            continue
        for index, available in free:
            if not mask >> index & 1:
                continue
            n = counts[k]
            for place, amount in needs:
                n = min(n, available[place] // amount)
            if n <= 0:
                continue
            for place, amount in needs:
                available[place] -= amount * n
            counts[k] -= n
            placed.setdefault(index, {})[k] = n
            if not counts[k]:
                break
    return tuple((index, tuple(sorted(placed[index].items()))) for index in sorted(placed))


def useful_bins(
    problem: PackingProblem, demand: Demand, counts: Sequence[int]
) -> list[tuple[int, list[int]]]:
    """Return (index, available amounts) of the bins that may hold some pod.

    Most nodes of a running cluster are full: comparing with the smallest request of any pod drops
    them.
    """
    asking = [k for k, count in enumerate(counts) if count]
    if not asking or not problem.bins:
        return []
    least_cpu = min(demand.cpu[k] for k in asking)
    least_memory = min(demand.memory[k] for k in asking)
    least_pods = min(demand.pods[k] for k in asking)
    anybody = 0
    for mask in sorted({problem.compatible_bins[k] for k in asking}):
        anybody |= mask
    found = []
    for index, available in enumerate(problem.bins):
        if anybody >> index & 1:
            amounts = dict(available.items)
            amounts_left = [amounts.get(name, 0) for name in demand.names]
            least = zip(amounts_left[:3], (least_cpu, least_memory, least_pods), strict=True)
            if all(amount >= need or not need for amount, need in least):
                found.append((index, amounts_left))
    return found
