"""The exact solution for a few pods, by dynamic programming over what is left to place."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final

from shared.packing.priced_problem import Pattern, PricedProblem
from shared.packing.search.identical_pods import cover_identical

EXACT: Final = "exact"
_STATES: Final = 200


def is_small(counts: Sequence[int]) -> bool:
    """Return whether the exact solution may be computed: one class, or few enough pods."""
    present = [count for count in counts if count]
    return len(present) == 1 or prod([count + 1 for count in present]) <= _STATES


def cover_exactly(priced: PricedProblem, counts: Sequence[int]) -> list[Pattern] | None:
    """Return the cheapest plan, or None when there are too many pods to compute it.

    Each class counted must fit some bin type. least(left) is the minimum, over the parts of what is
    left that contain a pod of its first class, of the price of one node for the part + least(the
    rest).
    """
    if not is_small(counts):
        return None
    present = [k for k, count in enumerate(counts) if count]
    if len(present) == 1:
        return cover_identical(priced, present[0], counts[present[0]])
    bin_types: dict[tuple[int, ...], int] = {}
    least: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
    # In this order every smaller state comes first.
    for state in product(*[range(counts[k] + 1) for k in present]):
        if not any(state):
            least[state] = (0, state)
            continue
        contents = tuple((k, n) for k, n in zip(present, state, strict=True) if n)
        needs, signatures = priced.needs(contents)
        bin_types[state] = priced.cheapest(needs, signatures)
        least[state] = _best_part(priced, state, bin_types, least)
    patterns = []
    state = tuple(counts[k] for k in present)
    while any(state):
        part = least[state][1]
        contents = tuple((k, n) for k, n in zip(present, part, strict=True) if n)
        patterns.append(Pattern(bin_type=bin_types[part], contents=contents))
        state = tuple(a - b for a, b in zip(state, part, strict=True))
    return patterns


def _best_part(
    priced: PricedProblem,
    state: tuple[int, ...],
    bin_types: dict[tuple[int, ...], int],
    least: dict[tuple[int, ...], tuple[int, tuple[int, ...]]],
) -> tuple[int, tuple[int, ...]]:
    first = next(place for place, n in enumerate(state) if n)
    ranges = [range(1 if place == first else 0, n + 1) for place, n in enumerate(state)]
    choices = []
    for part in product(*ranges):
        bin_type = bin_types[part]
        if bin_type >= 0:
            rest = tuple([a - b for a, b in zip(state, part, strict=True)])
            choices.append((priced.prices[bin_type] + least[rest][0], part))
    return min(choices)
