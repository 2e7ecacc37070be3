"""Plans from patterns: a programme over whole loads, for pods that are coarse for their nodes.

Where a node holds a few pods only, resource prices say too little: a pod that leaves a useless
rest costs more than its cpu and memory. Here every class has a price of its own, the dual value of
the programme of `bound.pattern_basis`. Loads come from a heuristic, so its value is not a bound.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from shared.packing.bound.pattern_basis import PatternBasis, first_basis
from shared.packing.priced_problem import Contents, Planned, PricedProblem
from shared.packing.search.budget import SearchBudget
from shared.packing.search.node_load import best_load

MOST_CLASSES: Final = 130
_KINDS_PER_CLASS: Final = 4
_MOST_PODS: Final = 20
_LOADS_PER_CLASS: Final = 12
_TINY: Final = 1e-9
_GOOD: Final = 0.97
_LARGE_PART: Final = 0.5
_FEW_LOADS_PER_CLASS: Final = 4
_PIVOTS_PER_CLASS: Final = 4
_ROUNDS: Final = 6
_REST: Final = 0.05
# Among more classes, those of signatures with at most this part of the worth are packed first,
# until less than this part of all is left.
_MANY_CLASSES: Final = 80
_FEW: Final = 0.125
_LEAST_LEFT: Final = 0.5


def plan_by_patterns(
    priced: PricedProblem, counts: Sequence[int], search_budget: SearchBudget
) -> tuple[list[Planned], list[int]]:
    """Return nodes for most of the pods, and the pods per class that are left.

    Several rounds: the programme is solved for what is left, and of the patterns in it are taken
    the whole parts, then one more of each, those with the largest fractions first, while the pods
    that are left fill it.
    """
    left = list(counts)
    plan = _few_first(priced, left)
    pool: dict[tuple[int, Contents], None] = {}
    enough = _REST * priced.worth_of(counts)
    loads = _LOADS_PER_CLASS
    for _ in range(_ROUNDS if any(left) else 0):
        basis = _start(priced, left)
        _reuse(priced, left, basis, pool)
        _improve(priced, left, basis, loads * len(basis.rows), search_budget)
        taken = _take(priced, left, basis)
        plan.extend(taken)
        if not taken or priced.worth_of(left) <= enough:
            break
        for kind, load in basis.patterns:
            if kind >= 0:
                pool[kind, tuple(sorted(load.items()))] = None
        loads = _FEW_LOADS_PER_CLASS
    return plan, left


def _few_first(priced: PricedProblem, left: list[int]) -> list[Planned]:
    """Return nodes for classes of few pods that may not run where most do; takes them off `left`.

    Among many classes: each is a row of the programme, which takes the cube of its rows.
    """
    signature = priced.demand.signature
    worths: dict[int, float] = {}
    for k, count in enumerate(left):
        worths[signature[k]] = worths.get(signature[k], 0.0) + count * priced.values[k]
    plan: list[Planned] = []
    if sum([1 for count in left if count]) <= _MANY_CLASSES:
        return plan
    whole = sum(worths.values())
    few = [(worth, value) for value, worth in worths.items() if worth <= _FEW * whole]
    for _, value in sorted(few):
        if priced.worth_of(left) < _LEAST_LEFT * whole:
            break
        kinds = [t for t, kind in enumerate(priced.kinds) if kind.signatures >> value & 1]
        for k in priced.by_value:
            while left[k] and signature[k] == value:
                loads = [
                    (load.worth / priced.prices[t], -t, load)
                    for t in kinds
                    if k in priced.members(t)
                    for load in [best_load(priced, t, left, priced.values, k)]
                ]
                _, kind, load = max(loads, key=lambda entry: entry[:2])
                contents = tuple(sorted(load.taken.items()))
                plan.append(Planned(kind=priced.right_size(contents, -kind), contents=contents))
                for j, n in contents:
                    left[j] -= n
    return plan


def _take(priced: PricedProblem, left: list[int], basis: PatternBasis) -> list[Planned]:
    """Return nodes of the patterns in the basis; takes their pods off `left`."""
    plan: list[Planned] = []
    parts = []
    for (kind, load), level in zip(basis.patterns, basis.levels, strict=True):
        if kind < 0 or level <= _TINY:
            continue
        contents = tuple(sorted(load.items()))
        copies = min([int(level + 1e-6), *[left[k] // n for k, n in contents]])
        if copies > 0:
            plan.append(Planned(kind=kind, contents=contents, copies=copies))
            for k, n in contents:
                left[k] -= n * copies
        parts.append((level - copies, kind, contents))
    for part, kind, contents in sorted(parts, reverse=True):
        some = tuple([(k, min(n, left[k])) for k, n in contents if left[k]])
        worth = sum([n * basis.values[k] for k, n in some])
        if some and worth >= _GOOD * priced.prices[kind] and (part >= _LARGE_PART or not plan):
            plan.append(Planned(kind=priced.right_size(some, kind), contents=some))
            for k, n in some:
                left[k] -= n
    return plan


def _reuse(
    priced: PricedProblem,
    counts: Sequence[int],
    basis: PatternBasis,
    pool: Iterable[tuple[int, Contents]],
) -> None:
    """Bring known patterns in, those worth most for their price first."""
    usable = [entry for entry in pool if all(n <= counts[k] for k, n in entry[1])]
    values, prices = basis.values, priced.prices
    for _ in range(_PIVOTS_PER_CLASS * len(basis.rows) if usable else 0):
        ratios = [sum([values[k] * n for k, n in load]) / prices[kind] for kind, load in usable]
        best = ratios.index(max(ratios))
        if ratios[best] <= 1 + 1e-6:
            break
        kind, load = usable[best]
        basis.enter(kind, dict(load), prices[kind] * (1 - ratios[best]))
        basis.drop_surplus(min(priced.prices))


def _start(priced: PricedProblem, counts: Sequence[int]) -> PatternBasis:
    """Return a first basis: each class alone on the kind that is cheapest for it."""
    present = [k for k, count in enumerate(counts) if count]
    return first_basis(counts, {k: min(_alone(priced, k, counts[k])) for k in present})


def _alone(priced: PricedProblem, k: int, count: int) -> list[tuple[float, int, int]]:
    needs = priced.demand.amounts(k)
    signature = priced.demand.signature[k]
    found = []
    for t, kind in enumerate(priced.kinds):
        if kind.signatures >> signature & 1:
            n = min([count, *[kind.room[place] // amount for place, amount in needs]])
            if n:
                found.append((priced.prices[t] / n, t, n))
    return found


def _improve(
    priced: PricedProblem,
    counts: Sequence[int],
    basis: PatternBasis,
    budget: int,
    search_budget: SearchBudget,
) -> None:
    """Bring new patterns in until none is found that helps, or `budget` loads were tried."""
    tasks = [
        (t, first)
        for t in _good_kinds(priced, counts)
        for first in (-1, *(k for k in priced.members(t) if k in basis.rows))
    ]
    idle = at = 0
    while idle < len(tasks) and budget > 0 and not search_budget.ended():
        kind, first = tasks[at]
        at = (at + 1) % len(tasks)
        idle += 1
        budget -= 1
        load = best_load(priced, kind, counts, basis.values, first)
        if load.worth > priced.prices[kind] * (1 + 1e-6):
            idle = 0
            basis.enter(kind, load.taken, priced.prices[kind] - load.worth)
            basis.drop_surplus(min(priced.prices))


def _good_kinds(priced: PricedProblem, counts: Sequence[int]) -> list[int]:
    """Return the kinds that can return most, some for each class.

    Kinds that hold a great many pods are left out where a class has others: any filling of such a
    kind is good, and slow to find.
    """
    large = _MOST_PODS * priced.worth_of(counts) / sum(counts)
    small = [t for t in priced.ranked if priced.ceilings[t] * priced.prices[t] <= large]
    missing = {k: _KINDS_PER_CLASS for k, count in enumerate(counts) if count}
    found: set[int] = set()
    for some in (small, priced.ranked):
        for t in some:
            members = [k for k in priced.members(t) if k in missing]
            if members:
                found.add(t)
            for k in members:
                missing[k] -= 1
                if not missing[k]:
                    del missing[k]
        missing = {k: most for k, most in missing.items() if most == _KINDS_PER_CLASS}
    return [t for t in priced.ranked if t in found]
