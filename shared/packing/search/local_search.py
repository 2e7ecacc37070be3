"""Local search: a few wasteful nodes of a plan are unpacked and packed again in another way."""

from collections.abc import Sequence
from typing import Final

from shared.model.values import replace
from shared.packing.priced_problem import Contents, Pattern, PricedProblem
from shared.packing.search.budget import SearchBudget
from shared.packing.search.completion import build_completion
from shared.packing.search.fill_node import FillRules
from shared.packing.seeded_random import SeededRandom

# A try fills nodes of each bin type: with several times this many, it costs several tries.
_MANY_BIN_TYPES: Final = 100
_SHARES: Final = (1.0, 1.0, 0.9, 0.8, 0.0)
_VALUE_EXPONENTS: Final = (0.0, 0.25, 0.25, 0.5)
_MOST_LEANS: Final = (0.0, 1.0, 1.5, 3.0)
_SCARCITY_EXPONENTS: Final = (0.0, 0.0, 1.0, 2.0)


def local_search(
    priced: PricedProblem,
    patterns: Sequence[Pattern],
    work: int,
    seed: int,
    search_budget: SearchBudget,
) -> list[Pattern]:
    """Return a plan for the same pods that is no more expensive.

    Args:
        priced: Classes, bin types and prices.
        patterns: The plan to start from.
        work: Budget, in classes tried; a number instead of a time keeps plans reproducible.
        seed: Determines what is tried.
        search_budget: When to stop earlier.
    """
    nodes = [entry._replace(copies=1) for entry in patterns for _ in range(entry.copies)]
    waste = [_waste(priced, node) for node in nodes]
    random = SeededRandom(seed)
    times = max(len(priced.bin_types) // _MANY_BIN_TYPES, 1)
    while work > 0 and len(nodes) > 1 and not search_budget.ended():
        chosen = _choose(random, waste)
        counts = [0] * len(priced.values)
        for position in chosen:
            for k, n in nodes[position].contents:
                counts[k] += n
        old = sum(priced.prices[nodes[position].bin_type] for position in chosen)
        work -= times * (len(chosen) + 2) * (sum(1 for n in counts if n) + 8)
        shaken = _perturbed(priced, random)
        rules = FillRules(
            share=_SHARES[random.below(len(_SHARES))],
            value_exponent=_VALUE_EXPONENTS[random.below(len(_VALUE_EXPONENTS))],
            most_lean=_MOST_LEANS[random.below(len(_MOST_LEANS))],
            scarcity_exponent=_SCARCITY_EXPONENTS[random.below(len(_SCARCITY_EXPONENTS))],
        )
        found = build_completion(shaken, counts, rules, old)
        if found is None:
            continue
        nodes = [node for position, node in enumerate(nodes) if position not in chosen]
        waste = [value for position, value in enumerate(waste) if position not in chosen]
        for entry in found:
            nodes.extend([entry._replace(copies=1)] * entry.copies)
            waste.extend([_waste(priced, entry)] * entry.copies)
    return merge_equal(nodes)


def merge_equal(nodes: Sequence[Pattern]) -> list[Pattern]:
    """Return the plan with equal nodes counted together, by bin type and contents."""
    copies: dict[tuple[int, Contents], int] = {}
    for node in nodes:
        key = (node.bin_type, node.contents)
        copies[key] = copies.get(key, 0) + node.copies
    return [
        Pattern(bin_type=bin_type, contents=contents, copies=many)
        for (bin_type, contents), many in sorted(copies.items())
    ]


def _waste(priced: PricedProblem, pattern: Pattern) -> float:
    value = sum(priced.values[k] * n for k, n in pattern.contents)
    return max(priced.prices[pattern.bin_type] - value, 0.0)


def _choose(random: SeededRandom, waste: Sequence[float]) -> set[int]:
    """Return two to eight positions, mostly where much is wasted."""
    many = min(2 + random.below(5) + random.below(3), len(waste))
    chosen: set[int] = set()
    for _ in range(4 * many):
        if len(chosen) == many:
            break
        if random.below(10) < 3:
            chosen.add(random.below(len(waste)))
        else:
            chosen.add(random.weighted(waste))
    return chosen


def _perturbed(priced: PricedProblem, random: SeededRandom) -> PricedProblem:
    """Return the priced problem with each bin type's expected value changed by up to 6 %."""
    return replace(
        priced, expected_value=tuple(c * (0.94 + 0.12 * random.part()) for c in priced.max_return)
    )
