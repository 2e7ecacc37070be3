"""A handful of pods: the exact answer, by dynamic programming over what is left to place."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final

from shared.packing.priced_problem import Planned, PricedProblem
from shared.packing.search.identical_pods import cover_identical

EXACT: Final = "exact"
_STATES: Final = 200


def is_small(counts: Sequence[int]) -> bool:
    """Return whether the exact answer may be known: one class, or few enough pods."""
    present = [count for count in counts if count]
    return len(present) == 1 or prod([count + 1 for count in present]) <= _STATES


def cover_exactly(priced: PricedProblem, counts: Sequence[int]) -> list[Planned] | None:
    """Return the cheapest plan there is, or None when the pods are too many to know it.

    Each class counted must fit some kind. least(left) is the least over parts of what is left,
    always with a pod of its first class, of the price of one node for the part + least(the rest).
    """
    if not is_small(counts):
        return None
    present = [k for k, count in enumerate(counts) if count]
    if len(present) == 1:
        return cover_identical(priced, present[0], counts[present[0]])
    kinds: dict[tuple[int, ...], int] = {}
    least: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
    # In this order every smaller state comes first.
    for state in product(*[range(counts[k] + 1) for k in present]):
        if not any(state):
            least[state] = (0, state)
            continue
        contents = tuple((k, n) for k, n in zip(present, state, strict=True) if n)
        needs, signatures = priced.needs(contents)
        kinds[state] = priced.cheapest(needs, signatures)
        least[state] = _best_part(priced, state, kinds, least)
    plan = []
    state = tuple(counts[k] for k in present)
    while any(state):
        part = least[state][1]
        contents = tuple((k, n) for k, n in zip(present, part, strict=True) if n)
        plan.append(Planned(kind=kinds[part], contents=contents))
        state = tuple(a - b for a, b in zip(state, part, strict=True))
    return plan


def _best_part(
    priced: PricedProblem,
    state: tuple[int, ...],
    kinds: dict[tuple[int, ...], int],
    least: dict[tuple[int, ...], tuple[int, tuple[int, ...]]],
) -> tuple[int, tuple[int, ...]]:
    first = next(place for place, n in enumerate(state) if n)
    ranges = [range(1 if place == first else 0, n + 1) for place, n in enumerate(state)]
    ways = []
    for part in product(*ranges):
        kind = kinds[part]
        if kind >= 0:
            rest = tuple([a - b for a, b in zip(state, part, strict=True)])
            ways.append((priced.prices[kind] + least[rest][0], part))
    return min(ways)
