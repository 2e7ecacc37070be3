"""Free capacity lowers the lower bound on a plan's price: pods in it need no new node.

The bound is a sum of values, one for each pod. Pods placed in free capacity cost nothing, so the
highest value that such pods can have together is subtracted. That value is bounded in two ways:
by what the free resources are worth to the classes of pods that may use them, and by the number
of those pods that fit.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from shared.packing.best_fit import useful_bins
from shared.packing.demand import Demand
from shared.packing.problem import PackingProblem

# Bins times classes. Where there are more, pods that fit are not counted for each bin.
_MOST_COUNTED: Final = 40_000


class FreeCapacity(NamedTuple):
    """Free capacity of one bin.

    Attributes:
        amounts: In the order of `Demand.names`.
        classes: Classes with pods that may go there.
        part: All classes of the bins that share a class with this bin, directly or through other
            bins.
        most: Pods of each of `classes` that fit alone; empty where it would take too long.
    """

    amounts: tuple[int, ...]
    classes: tuple[int, ...]
    part: tuple[int, ...]
    most: tuple[int, ...] = ()


FreeCapacities = tuple[FreeCapacity, ...]
NO_FREE_CAPACITY: Final[FreeCapacities] = ()
ValueOfCapacity = Callable[[FreeCapacity, Sequence[int]], int | None]


def pods_beyond(free_capacities: FreeCapacities, counts: Sequence[int]) -> list[int]:
    """Return the pods of each class that do not fit even if it has all free capacity alone."""
    left = list(counts)
    for free in free_capacities:
        # Where `most` is not known, all pods of the part may fit.
        most = dict(zip(free.classes, free.most, strict=True)) if free.most else {}
        for k in free.classes if free.most else free.part:
            left[k] = max(left[k] - most.get(k, left[k]), 0)
    return left


def find_free_capacities(
    problem: PackingProblem, demand: Demand, counts: Sequence[int]
) -> FreeCapacities:
    """Return the free capacity of the bins that could hold any of the pods."""
    useful = useful_bins(problem, demand, counts)
    if not useful:
        return NO_FREE_CAPACITY
    open_to: dict[int, list[int]] = {}
    for k, count in enumerate(counts):
        if count and problem.compatible_bins[k]:
            open_to.setdefault(problem.compatible_bins[k], []).append(k)
    groups = sorted(open_to.items())
    # As text, since testing the bits of a long integer one by one copies it every time.
    digits = [f"{mask:b}"[::-1] for mask, _ in groups]
    is_counted = len(useful) * sum([len(some) for _, some in groups]) <= _MOST_COUNTED
    listed: dict[tuple[int, ...], tuple[int, ...]] = {}
    found: list[tuple[tuple[int, ...], FreeCapacity]] = []
    for index, amounts_left in useful:
        who = tuple([g for g, text in enumerate(digits) if text[index : index + 1] == "1"])
        if who not in listed:
            listed[who] = tuple(sorted([k for g in who for k in groups[g][1]]))
        classes = listed[who]
        amounts = tuple(
            [max(a - a % s, 0) for a, s in zip(amounts_left, demand.steps, strict=True)]
        )
        most = (
            tuple([_fitting(demand, k, counts[k], amounts) for k in classes]) if is_counted else ()
        )
        if any(most) or not is_counted:
            found.append((who, FreeCapacity(amounts, classes, classes, most)))
    return _in_parts(found, [some for _, some in groups])


def value_beyond(
    values: Sequence[int],
    counts: Sequence[int],
    free_capacities: FreeCapacities,
    value_of_capacity: ValueOfCapacity,
) -> int:
    """Return the value of the pods that free capacity cannot hold.

    Args:
        values: Value of one pod per class.
        counts: Pods per class.
        free_capacities: The free capacity.
        value_of_capacity: Returns an upper bound on what the amounts of a bin are worth to
            classes; None if none is known.
    """
    parts: dict[tuple[int, ...], list[FreeCapacity]] = {}
    for free in free_capacities:
        parts.setdefault(free.part, []).append(free)
    inside = {k for part in parts for k in part}
    total = sum([n * values[k] for k, n in enumerate(counts) if n and k not in inside])
    for part, own in parts.items():
        total += _beyond(sum([counts[k] * values[k] for k in part]), values, own, value_of_capacity)
    return total


def _beyond(
    value: int,
    values: Sequence[int],
    free_capacities: Sequence[FreeCapacity],
    value_of_capacity: ValueOfCapacity,
) -> int:
    """Return some pods' value, less that of the free capacity they could use; not below 0."""
    for free in free_capacities:
        some = [k for k in free.classes if values[k]]
        known = value_of_capacity(free, some)
        if free.most:
            pods = sum([values[k] * n for k, n in zip(free.classes, free.most, strict=True)])
            known = pods if known is None else min(pods, known)
        if known is None or value <= known:
            return 0
        value -= known
    return value


def _fitting(demand: Demand, k: int, count: int, available: Sequence[int]) -> int:
    most = count
    for place, amount in demand.amounts(k):
        most = min(most, available[place] // amount)
    return most


def _in_parts(
    found: Sequence[tuple[tuple[int, ...], FreeCapacity]], groups: Sequence[Sequence[int]]
) -> FreeCapacities:
    """Return the free capacities, each with its part."""
    home = list(range(len(groups)))
    for who in sorted({who for who, _ in found}):
        together = {home[g] for g in who}
        home = [min(together) if value in together else value for value in home]
    parts: dict[int, list[int]] = {}
    for g, some in enumerate(groups):
        parts.setdefault(home[g], []).extend(some)
    whole = {part: tuple(sorted(classes)) for part, classes in parts.items()}
    return tuple(free._replace(part=whole[home[who[0]]]) for who, free in found)
