"""Launch groups, few of them: nodes of one kind are bought in one call; kinds are merged."""

from collections.abc import Sequence
from operator import gt
from typing import Final

from shared.packing.bound.resource_prices import find_prices
from shared.packing.priced_problem import Planned, PricedProblem

_NEVER: Final = 1 << 62


def merge_kinds(
    priced: PricedProblem, plan: Sequence[Planned], most: int, more: int = _NEVER
) -> list[Planned]:
    """Return the plan with at most `most` kinds, some nodes being larger than they need to be.

    The kind whose nodes cost least to move to the remaining kinds is removed, until few enough
    are left, no node can move any more, or the plan would cost more by over `more`.
    """
    used = sorted({entry.kind for entry in plan})
    costs = [_moves(priced, entry, used) for entry in plan]
    home = [entry.kind for entry in plan]
    while len(used) > most:
        best: tuple[int, int] | None = None
        for kind in used:
            total = 0
            for position, entry in enumerate(plan):
                if home[position] == kind:
                    move = _cheapest_move(costs[position], used, kind)
                    total += (
                        costs[position].get(move, _NEVER) - priced.prices[kind]
                    ) * entry.copies
            if best is None or (total, kind) < best:
                best = (total, kind)
        assert best is not None
        more -= best[0]
        if best[0] >= _NEVER // 2 or more < 0:
            break
        for position in range(len(plan)):
            if home[position] == best[1]:
                home[position] = _cheapest_move(costs[position], used, best[1])
        used.remove(best[1])
    return [
        Planned(kind=kind, contents=entry.contents, copies=entry.copies)
        for kind, entry in zip(home, plan, strict=True)
    ]


def _moves(priced: PricedProblem, planned: Planned, used: Sequence[int]) -> dict[int, int]:
    """Return the price of each used kind that holds a node's contents."""
    needs, signatures = priced.needs(planned.contents)
    found = {}
    for number in used:
        kind = priced.kinds[number]
        if not signatures & ~kind.signatures and all(
            a <= b for a, b in zip(needs, kind.room, strict=True)
        ):
            found[number] = priced.prices[number]
    return found


def _cheapest_move(costs: dict[int, int], used: Sequence[int], but: int) -> int:
    ways = [(costs[kind], kind) for kind in used if kind != but and kind in costs]
    return min(ways)[1] if ways else -1


def choose_kinds(
    priced: PricedProblem, counts: Sequence[int], plan: Sequence[Planned], most: int
) -> list[int]:
    """Return at most `most` kinds to plan with instead, sorted; empty when none are better.

    These are, for all pods that may run on the same kinds, the one size that would serve them
    cheapest, in parts, if it were the only one; then the plan's sizes that save most in addition.
    """
    asked: dict[int, list[int]] = {}
    largest: dict[int, list[int]] = {}
    size = len(priced.demand.names)
    for entry in plan:
        home = priced.kinds[entry.kind].signatures
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
    more = sorted({entry.kind for entry in plan} - chosen)
    while len(chosen) < most and more:
        ways = [(_cost_of(priced, counts, [*chosen, kind]), kind) for kind in more]
        kind = min(ways)[1]
        chosen.add(kind)
        more.remove(kind)
    return sorted(chosen)


def _one_size(
    priced: PricedProblem, home: int, total: Sequence[int], largest: Sequence[int]
) -> int:
    """Return the kind that serves some pods cheapest when they run on nothing else, -1 for none."""
    found: list[tuple[float, int]] = []
    for t, kind in enumerate(priced.kinds):
        if home & ~kind.signatures or any(map(gt, largest, kind.room)):
            continue
        nodes = max([a / room for a, room in zip(total, kind.room, strict=True) if a])
        found.append((max(nodes, 1.0) * priced.prices[t], t))
    return min(found, default=(0.0, -1))[1]


def _cost_of(priced: PricedProblem, counts: Sequence[int], some: Sequence[int]) -> float:
    """Return what the programme pays for the pods when only some kinds are sold."""
    kinds = [priced.kinds[t] for t in sorted(some)]
    prices = [priced.prices[t] for t in sorted(some)]
    mix = find_prices(priced.demand, counts, kinds, prices).mix
    return sum([many * prices[t] for t, many in mix])
