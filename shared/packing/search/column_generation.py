"""Plans from patterns: a linear program over whole loads, where nodes hold few pods.

Where a node holds only a few pods, resource prices say too little: a pod that leaves an unusable
rest costs more than its cpu and memory. Here every class has a price of its own, its dual price in
the linear program of `bound.pattern_basis`. Loads come from a heuristic, so the value of the
program is not a bound.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from shared.packing.bound.pattern_basis import PatternBasis, first_basis
from shared.packing.priced_problem import Contents, Pattern, PricedProblem
from shared.packing.search.budget import SearchBudget
from shared.packing.search.node_load import best_load

MOST_CLASSES: Final = 130
_BIN_TYPES_PER_CLASS: Final = 4
_MOST_PODS: Final = 20
_LOADS_PER_CLASS: Final = 12
_TINY: Final = 1e-9
_GOOD: Final = 0.97
_LARGE_PART: Final = 0.5
_FEW_LOADS_PER_CLASS: Final = 4
_PIVOTS_PER_CLASS: Final = 4
_ROUNDS: Final = 6
_REST: Final = 0.05
# With more classes than this, those of signatures with at most `_FEW` of the total value are packed
# first, until less than `_LEAST_LEFT` of it is left.
_MANY_CLASSES: Final = 80
_FEW: Final = 0.125
_LEAST_LEFT: Final = 0.5


def generate_columns(
    priced: PricedProblem, counts: Sequence[int], search_budget: SearchBudget
) -> tuple[list[Pattern], list[int]]:
    """Return nodes for most of the pods, and the pods per class that are left.

    Each round solves the linear program for the pods that are left and takes the whole part of each
    pattern, then one more of each, those with the largest fractions first, while the pods that are
    left fill it.
    """
    left = list(counts)
    patterns = _rare_first(priced, left)
    column_pool: dict[tuple[int, Contents], None] = {}
    enough = _REST * priced.value_of(counts)
    loads = _LOADS_PER_CLASS
    for _ in range(_ROUNDS if any(left) else 0):
        basis = _start(priced, left)
        _reuse_columns(priced, left, basis, column_pool)
        _add_columns(priced, left, basis, loads * len(basis.rows), search_budget)
        taken = _round_patterns(priced, left, basis)
        patterns.extend(taken)
        if not taken or priced.value_of(left) <= enough:
            break
        for bin_type, load in basis.patterns:
            if bin_type >= 0:
                column_pool[bin_type, tuple(sorted(load.items()))] = None
        loads = _FEW_LOADS_PER_CLASS
    return patterns, left


def _rare_first(priced: PricedProblem, left: list[int]) -> list[Pattern]:
    """Return nodes for classes of few pods that may not run where most do; reduce `left`.

    Only with many classes: each is a row of the linear program, whose time grows with their cube.
    """
    signature = priced.demand.signature
    values_by_signature: dict[int, float] = {}
    for k, count in enumerate(left):
        values_by_signature[signature[k]] = (
            values_by_signature.get(signature[k], 0.0) + count * priced.values[k]
        )
    patterns: list[Pattern] = []
    if sum([1 for count in left if count]) <= _MANY_CLASSES:
        return patterns
    whole = sum(values_by_signature.values())
    rare = [
        (value, signature_number)
        for signature_number, value in values_by_signature.items()
        if value <= _FEW * whole
    ]
    for _, signature_number in sorted(rare):
        if priced.value_of(left) < _LEAST_LEFT * whole:
            break
        bin_types = [
            t
            for t, bin_type in enumerate(priced.bin_types)
            if bin_type.signatures >> signature_number & 1
        ]
        for k in priced.by_value:
            while left[k] and signature[k] == signature_number:
                loads = [
                    (load.value / priced.prices[t], -t, load)
                    for t in bin_types
                    if k in priced.classes_that_fit(t)
                    for load in [best_load(priced, t, left, priced.values, k)]
                ]
                _, bin_type, load = max(loads, key=lambda entry: entry[:2])
                contents = tuple(sorted(load.contents.items()))
                patterns.append(
                    Pattern(bin_type=priced.right_size(contents, -bin_type), contents=contents)
                )
                for j, n in contents:
                    left[j] -= n
    return patterns


def _round_patterns(priced: PricedProblem, left: list[int], basis: PatternBasis) -> list[Pattern]:
    """Return nodes of the patterns in the basis; reduce `left` by their pods."""
    patterns: list[Pattern] = []
    parts = []
    for (bin_type, load), level in zip(basis.patterns, basis.levels, strict=True):
        if bin_type < 0 or level <= _TINY:
            continue
        contents = tuple(sorted(load.items()))
        copies = min([int(level + 1e-6), *[left[k] // n for k, n in contents]])
        if copies > 0:
            patterns.append(Pattern(bin_type=bin_type, contents=contents, copies=copies))
            for k, n in contents:
                left[k] -= n * copies
        parts.append((level - copies, bin_type, contents))
    for part, bin_type, contents in sorted(parts, reverse=True):
        some = tuple([(k, min(n, left[k])) for k, n in contents if left[k]])
        value = sum([n * basis.dual_prices[k] for k, n in some])
        if (
            some
            and value >= _GOOD * priced.prices[bin_type]
            and (part >= _LARGE_PART or not patterns)
        ):
            patterns.append(Pattern(bin_type=priced.right_size(some, bin_type), contents=some))
            for k, n in some:
                left[k] -= n
    return patterns


def _reuse_columns(
    priced: PricedProblem,
    counts: Sequence[int],
    basis: PatternBasis,
    column_pool: Iterable[tuple[int, Contents]],
) -> None:
    """Enter known patterns into the basis, highest value per price first."""
    usable = [entry for entry in column_pool if all(n <= counts[k] for k, n in entry[1])]
    values, prices = basis.dual_prices, priced.prices
    for _ in range(_PIVOTS_PER_CLASS * len(basis.rows) if usable else 0):
        ratios = [
            sum([values[k] * n for k, n in load]) / prices[bin_type] for bin_type, load in usable
        ]
        best = ratios.index(max(ratios))
        if ratios[best] <= 1 + 1e-6:
            break
        bin_type, load = usable[best]
        basis.enter(bin_type, dict(load), prices[bin_type] * (1 - ratios[best]))
        basis.add_slack_columns(min(priced.prices))


def _start(priced: PricedProblem, counts: Sequence[int]) -> PatternBasis:
    """Return a first basis: each class alone on the bin type that is cheapest for it."""
    present = [k for k, count in enumerate(counts) if count]
    return first_basis(counts, {k: min(_alone(priced, k, counts[k])) for k in present})


def _alone(priced: PricedProblem, k: int, count: int) -> list[tuple[float, int, int]]:
    needs = priced.demand.amounts(k)
    signature = priced.demand.signature[k]
    found = []
    for t, bin_type in enumerate(priced.bin_types):
        if bin_type.signatures >> signature & 1:
            n = min([count, *[bin_type.allocatable[place] // amount for place, amount in needs]])
            if n:
                found.append((priced.prices[t] / n, t, n))
    return found


def _add_columns(
    priced: PricedProblem,
    counts: Sequence[int],
    basis: PatternBasis,
    budget: int,
    search_budget: SearchBudget,
) -> None:
    """Enter new patterns until none is found that helps, or `budget` loads were tried."""
    tasks = [
        (t, first)
        for t in _good_bin_types(priced, counts)
        for first in (-1, *(k for k in priced.classes_that_fit(t) if k in basis.rows))
    ]
    idle = at = 0
    while idle < len(tasks) and budget > 0 and not search_budget.ended():
        bin_type, first = tasks[at]
        at = (at + 1) % len(tasks)
        idle += 1
        budget -= 1
        load = best_load(priced, bin_type, counts, basis.dual_prices, first)
        if load.value > priced.prices[bin_type] * (1 + 1e-6):
            idle = 0
            basis.enter(bin_type, load.contents, priced.prices[bin_type] - load.value)
            basis.add_slack_columns(min(priced.prices))


def _good_bin_types(priced: PricedProblem, counts: Sequence[int]) -> list[int]:
    """Return the bin types with the highest `max_return`, some for each class.

    Bin types that hold a great many pods are left out where a class has others: any filling of such
    a bin type is good, and slow to find.
    """
    large = _MOST_PODS * priced.value_of(counts) / sum(counts)
    small = [t for t in priced.by_max_return if priced.max_return[t] * priced.prices[t] <= large]
    missing = {k: _BIN_TYPES_PER_CLASS for k, count in enumerate(counts) if count}
    found: set[int] = set()
    for some in (small, priced.by_max_return):
        for t in some:
            members = [k for k in priced.classes_that_fit(t) if k in missing]
            if members:
                found.add(t)
            for k in members:
                missing[k] -= 1
                if not missing[k]:
                    del missing[k]
        missing = {k: most for k, most in missing.items() if most == _BIN_TYPES_PER_CLASS}
    return [t for t in priced.by_max_return if t in found]
