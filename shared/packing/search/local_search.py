"""Improving a plan: a few wasteful nodes are taken apart and packed again in another way."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from shared.packing.priced_problem import Contents, Planned, PricedProblem
from shared.packing.search.budget import SearchBudget
from shared.packing.search.completion import build_ending
from shared.packing.search.fill_node import Rules
from shared.packing.seeded_random import SeededRandom

_SHARES: Final = (1.0, 1.0, 0.9, 0.8, 0.0)
_TILTS: Final = (0.0, 0.25, 0.25, 0.5)
_SLANTS: Final = (0.0, 1.0, 1.5, 3.0)
_BALANCES: Final = (0.0, 0.0, 1.0, 2.0)


def improve(
    priced: PricedProblem,
    plan: Sequence[Planned],
    work: int,
    seed: int,
    search_budget: SearchBudget,
) -> list[Planned]:
    """Return a plan for the same pods that is no more expensive.

    Args:
        priced: Classes, kinds and what they are worth.
        plan: Where to start.
        work: Budget, in classes looked at; a number and not a time, for the same plan every time.
        seed: Settles what is tried.
        search_budget: When to stop earlier.
    """
    nodes = [entry._replace(copies=1) for entry in plan for _ in range(entry.copies)]
    waste = [_waste(priced, node) for node in nodes]
    draws = SeededRandom(seed)
    while work > 0 and len(nodes) > 1 and not search_budget.ended():
        chosen = _choose(draws, waste)
        counts = [0] * len(priced.values)
        for position in chosen:
            for k, n in nodes[position].contents:
                counts[k] += n
        old = sum(priced.prices[nodes[position].kind] for position in chosen)
        work -= (len(chosen) + 2) * (sum(1 for n in counts if n) + 8)
        shaken = _shaken(priced, draws)
        rules = Rules(
            share=_SHARES[draws.below(len(_SHARES))],
            tilt=_TILTS[draws.below(len(_TILTS))],
            slant=_SLANTS[draws.below(len(_SLANTS))],
            balance=_BALANCES[draws.below(len(_BALANCES))],
        )
        found = build_ending(shaken, counts, rules, old)
        if found is None:
            continue
        nodes = [node for position, node in enumerate(nodes) if position not in chosen]
        waste = [value for position, value in enumerate(waste) if position not in chosen]
        for entry in found:
            nodes.extend([entry._replace(copies=1)] * entry.copies)
            waste.extend([_waste(priced, entry)] * entry.copies)
    return gather(nodes)


def gather(nodes: Sequence[Planned]) -> list[Planned]:
    """Return the plan with equal nodes counted together, by kind and contents."""
    copies: dict[tuple[int, Contents], int] = {}
    for node in nodes:
        key = (node.kind, node.contents)
        copies[key] = copies.get(key, 0) + node.copies
    return [
        Planned(kind=kind, contents=contents, copies=many)
        for (kind, contents), many in sorted(copies.items())
    ]


def _waste(priced: PricedProblem, planned: Planned) -> float:
    value = sum(priced.values[k] * n for k, n in planned.contents)
    return max(priced.prices[planned.kind] - value, 0.0)


def _choose(draws: SeededRandom, waste: Sequence[float]) -> set[int]:
    """Return two to eight positions, mostly where much is wasted."""
    many = min(2 + draws.below(5) + draws.below(3), len(waste))
    chosen: set[int] = set()
    for _ in range(4 * many):
        if len(chosen) == many:
            break
        if draws.below(10) < 3:
            chosen.add(draws.below(len(waste)))
        else:
            chosen.add(draws.weighted(waste))
    return chosen


def _shaken(priced: PricedProblem, draws: SeededRandom) -> PricedProblem:
    """Return the ground with the worth of each kind's room changed by up to 6 %."""
    return replace(priced, hopes=tuple(c * (0.94 + 0.12 * draws.part()) for c in priced.ceilings))
