"""A load: the pods that are worth most on one node when each class of pods has a value.

Unlike `fill_node`, which gives all classes their share, this searches for the most valuable load: a
pod to begin with, then the pods with the highest value for what they request, then exchanges of one
pod for another of higher value. Such loads are the new columns of the linear program.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from shared.packing.priced_problem import PricedProblem

# Pods are exchanged only in loads whose value is at least this share of the bin's price.
_PROMISING: Final = 0.88
_MOST_EXCHANGES: Final = 4
_MANY_PODS: Final = 32


class NodeLoad(Struct):
    """Pods by class, their value, and what they leave available."""

    contents: dict[int, int]
    value: float
    available: list[int]


def best_load(
    priced: PricedProblem,
    bin_type: int,
    counts: Sequence[int],
    values: Sequence[float],
    first: int = -1,
) -> NodeLoad:
    """Return a load of high value.

    Args:
        priced: Classes and bin types.
        bin_type: Index of the node's bin type.
        counts: Pods per class.
        values: Value of one pod per class; classes without value are left out.
        first: A class of which one pod, which must fit, is in the load in any case; -1 for none.
    """
    members = [k for k in priced.classes_that_fit(bin_type) if counts[k] and values[k] > 0.0]
    load = NodeLoad({}, 0.0, list(priced.bin_types[bin_type].allocatable))
    if first >= 0:
        _add(priced, load, first, 1, values)
    _add_densest(priced, members, counts, values, load)
    price = priced.prices[bin_type]
    if load.value > _PROMISING * price and sum(load.contents.values()) <= _MANY_PODS:
        for _ in range(_MOST_EXCHANGES):
            if not _exchange(priced, members, counts, values, load):
                break
    return load


def _add(priced: PricedProblem, load: NodeLoad, k: int, n: int, values: Sequence[float]) -> None:
    free = load.available
    free[0] -= n * priced.cpu[k]
    free[1] -= n * priced.memory[k]
    free[2] -= n * priced.pods[k]
    for place, amount in priced.demand.extras[k]:
        free[place + 3] -= n * amount
    load.value += n * values[k]
    many = load.contents.get(k, 0) + n
    if many:
        load.contents[k] = many
    else:
        del load.contents[k]


def _add_densest(
    priced: PricedProblem,
    members: Sequence[int],
    counts: Sequence[int],
    values: Sequence[float],
    load: NodeLoad,
) -> None:
    """Add pods while any fits: always that with the most value for its share of what is left."""
    cpu, memory, pods, extras = priced.cpu, priced.memory, priced.pods, priced.demand.extras
    taken, free = load.contents, load.available
    seen = list(members)
    while True:
        left_cpu, left_memory, left_pods = free[:3]
        seen = [
            k
            for k in seen
            if cpu[k] <= left_cpu
            and memory[k] <= left_memory
            and pods[k] <= left_pods
            and counts[k] > taken.get(k, 0)
            and (not extras[k] or all(amount <= free[place + 3] for place, amount in extras[k]))
        ]
        if not seen:
            return
        per_cpu, per_memory = 1.0 / (left_cpu or 1), 1.0 / (left_memory or 1)
        scores = [values[k] / (per_cpu * cpu[k] + per_memory * memory[k]) for k in seen]
        k = seen[scores.index(max(scores))]
        n = min(
            counts[k] - taken.get(k, 0),
            left_cpu // cpu[k],
            left_memory // memory[k],
            left_pods // pods[k],
            *[free[place + 3] // amount for place, amount in extras[k]],
        )
        _add(priced, load, k, (n + 1) // 2, values)


def _exchange(
    priced: PricedProblem,
    members: Sequence[int],
    counts: Sequence[int],
    values: Sequence[float],
    load: NodeLoad,
) -> bool:
    """Exchange one pod for one of higher value, the best such pair; return whether it did."""
    cpu, memory, extras = priced.cpu, priced.memory, priced.demand.extras
    taken, free = load.contents, load.available
    best, out, into = 1e-9 * load.value, -1, -1
    for j in taken:
        left_cpu, left_memory, least = free[0] + cpu[j], free[1] + memory[j], best + values[j]
        back = dict(extras[j])
        for k in members:
            if (
                values[k] > least
                and cpu[k] <= left_cpu
                and memory[k] <= left_memory
                and taken.get(k, 0) < counts[k]
                and priced.pods[k] <= free[2] + priced.pods[j]
                and all(a <= free[place + 3] + back.get(place, 0) for place, a in extras[k])
            ):
                least, best, out, into = values[k], values[k] - values[j], j, k
    if out < 0:
        return False
    _add(priced, load, out, -1, values)
    _add(priced, load, into, 1, values)
    return True
