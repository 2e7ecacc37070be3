"""Few launch groups: nodes of one bin type are launched in one call; bin types are merged."""

from collections.abc import Sequence
from operator import gt
from typing import Final

from shared.packing.bound.resource_prices import find_prices
from shared.packing.priced_problem import Pattern, PricedProblem

_NEVER: Final = 1 << 62


def reduce_launch_groups(
    priced: PricedProblem, patterns: Sequence[Pattern], most: int, more: int = _NEVER
) -> list[Pattern]:
    """Return the plan with at most `most` bin types, some nodes being larger than they need to be.

    The bin type whose nodes cost least to move to the remaining bin types is removed, until few
    enough are left, no node can move any more, or the plan would cost more by over `more`.
    """
    used = sorted({entry.bin_type for entry in patterns})
    costs = [_moves(priced, entry, used) for entry in patterns]
    home = [entry.bin_type for entry in patterns]
    while len(used) > most:
        best: tuple[int, int] | None = None
        for bin_type in used:
            total = 0
            for position, entry in enumerate(patterns):
                if home[position] == bin_type:
                    move = _cheapest_move(costs[position], used, bin_type)
                    total += (
                        costs[position].get(move, _NEVER) - priced.prices[bin_type]
                    ) * entry.copies
            if best is None or (total, bin_type) < best:
                best = (total, bin_type)
        assert best is not None
        more -= best[0]
        if best[0] >= _NEVER // 2 or more < 0:
            break
        for position in range(len(patterns)):
            if home[position] == best[1]:
                home[position] = _cheapest_move(costs[position], used, best[1])
        used.remove(best[1])
    return [
        Pattern(bin_type=bin_type, contents=entry.contents, copies=entry.copies)
        for bin_type, entry in zip(home, patterns, strict=True)
    ]


def _moves(priced: PricedProblem, planned: Pattern, used: Sequence[int]) -> dict[int, int]:
    """Return the price of each used bin type that holds a node's contents."""
    needs, signatures = priced.needs(planned.contents)
    found = {}
    for number in used:
        bin_type = priced.bin_types[number]
        if not signatures & ~bin_type.signatures and all(
            a <= b for a, b in zip(needs, bin_type.allocatable, strict=True)
        ):
            found[number] = priced.prices[number]
    return found


def _cheapest_move(costs: dict[int, int], used: Sequence[int], but: int) -> int:
    choices = [
        (costs[bin_type], bin_type) for bin_type in used if bin_type != but and bin_type in costs
    ]
    return min(choices)[1] if choices else -1


def choose_bin_types(
    priced: PricedProblem, counts: Sequence[int], patterns: Sequence[Pattern], most: int
) -> list[int]:
    """Return at most `most` bin types to plan with instead, sorted; empty when none are better.

    These are, for all pods that may run on the same bin types, the one that would serve them
    cheapest, in fractions, if it were the only one; then those of the plan that save most in
    addition.
    """
    asked: dict[int, list[int]] = {}
    largest: dict[int, list[int]] = {}
    size = len(priced.demand.names)
    for entry in patterns:
        home = priced.bin_types[entry.bin_type].signatures
        needs, _ = priced.needs(entry.contents)
        total = asked.setdefault(home, [0] * size)
        asked[home] = [a + n * entry.copies for a, n in zip(total, needs, strict=True)]
        tops = largest.setdefault(home, [0] * size)
        for k, _ in entry.contents:
            for place, amount in priced.demand.amounts(k):
                tops[place] = max(tops[place], amount)
    if len(asked) > most:
        return []
    chosen: set[int] = set()
    for home, total in asked.items():
        best = _one_size(priced, home, total, largest[home])
        if best < 0:
            return []
        chosen.add(best)
    more = sorted({entry.bin_type for entry in patterns} - chosen)
    while len(chosen) < most and more:
        choices = [(_cost_of(priced, counts, [*chosen, bin_type]), bin_type) for bin_type in more]
        bin_type = min(choices)[1]
        chosen.add(bin_type)
        more.remove(bin_type)
    return sorted(chosen)


def _one_size(
    priced: PricedProblem, home: int, total: Sequence[int], largest: Sequence[int]
) -> int:
    """Return the bin type that serves some pods cheapest by itself, -1 for none."""
    found: list[tuple[float, int]] = []
    for t, bin_type in enumerate(priced.bin_types):
        if home & ~bin_type.signatures or any(map(gt, largest, bin_type.allocatable)):
            continue
        nodes = max(
            [
                a / amount_of_bin
                for a, amount_of_bin in zip(total, bin_type.allocatable, strict=True)
                if a
            ]
        )
        found.append((max(nodes, 1.0) * priced.prices[t], t))
    return min(found, default=(0.0, -1))[1]


def _cost_of(priced: PricedProblem, counts: Sequence[int], some: Sequence[int]) -> float:
    """Return what the linear program pays for the pods with only some bin types."""
    bin_types = [priced.bin_types[t] for t in sorted(some)]
    prices = [priced.prices[t] for t in sorted(some)]
    mix = find_prices(priced.demand, counts, bin_types, prices).mix
    return sum([many * prices[t] for t, many in mix])
