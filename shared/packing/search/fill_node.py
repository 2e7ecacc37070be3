"""Filling one node: place a share of every class, then top up.

The shares keep the mix of the remaining pods about the same from node to node, so that cpu-heavy
and memory-heavy pods run out together. The shares lean towards the resource that a bin type has
more of, so that a node with much memory gets the memory-heavy pods and both resources are used up.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.packing.priced_problem import PricedProblem

_SHRINK: Final = (1.0, 0.97, 0.9, 0.75, 0.5, 0.0)  # the last one always fits
_LOOKED_AT: Final = 48
_LEAST_LEAN: Final = 0.02
_LEAST_SHARE: Final = 0.001

Filling = list[tuple[int, int]]


class FillRules(NamedTuple):
    """How nodes are filled.

    Attributes:
        share: Part of its share that each class gets; 0 for topping up only.
        value_exponent: Exponent of a pod's value in its share: above 0, large pods go first.
        most_lean: How strongly shares may lean towards the resource that a bin type has more of.
        scarcity_exponent: Exponent of how scarce a resource is in the weights of topping up.
    """

    share: float = 1.0
    value_exponent: float = 0.25
    most_lean: float = 1.5
    scarcity_exponent: float = 0.0


class _Members(NamedTuple):
    """The classes that fit some bin types, with pods left.

    Attributes:
        classes: By falling value.
        wanted: Total requests of cpu, memory and `pods`.
        leans: Per class, what its share is multiplied by before the bin type counts.
        totals: What `_totals` returns for them.
    """

    classes: list[int]
    wanted: tuple[int, int, int]
    leans: list[float]
    totals: tuple[float, float, float, float]


class PodsLeft:
    """The pods that nodes are filled from, and what the fillings of several bin types share."""

    def __init__(self, priced: PricedProblem, counts: Sequence[int], rules: FillRules) -> None:
        self.priced = priced
        self.counts = counts
        self.rules = rules
        self.beside: dict[int, int] = {}
        for k in priced.with_extras:
            if counts[k]:
                for place, amount in priced.demand.extras[k]:
                    self.beside[place] = self.beside.get(place, 0) + amount * counts[k]
        self._members: dict[int, _Members] = {}

    def members(self, bin_type: int) -> _Members:
        """Return the classes with pods left that fit a bin type."""
        fitting = self.priced.classes_that_fit(bin_type)
        known = self._members.get(id(fitting))
        if known is None:
            known = self._members[id(fitting)] = self._members_of(fitting)
        return known

    def _members_of(self, fitting: Sequence[int]) -> _Members:
        priced, counts = self.priced, self.counts
        cpu, memory, pods = priced.cpu, priced.memory, priced.pods
        classes = [k for k in fitting if counts[k]]
        powers = priced.powers(self.rules.value_exponent)
        leans = [powers[k] for k in classes]
        return _Members(
            classes=classes,
            wanted=(
                sum([counts[k] * cpu[k] for k in classes]),
                sum([counts[k] * memory[k] for k in classes]),
                sum([counts[k] * pods[k] for k in classes]),
            ),
            leans=leans,
            totals=_totals(priced, classes, counts, leans),
        )


def fill(left: PodsLeft, bin_type: int) -> Filling:
    """Return the contents of one filled node of a bin type, classes by falling value."""
    counts = left.counts
    allocatable = left.priced.bin_types[bin_type].allocatable
    some = left.members(bin_type)
    members = some.classes
    if not members:
        return []
    scarce_extras = {
        p: allocatable[p + 3] / amount
        for p, amount in left.beside.items()
        if amount > allocatable[p + 3]
    }
    scarce = [amount / allocatable[place] for place, amount in enumerate(some.wanted)]
    most = max(scarce)
    if most <= 1.0 and not scarce_extras:
        return [(k, counts[k]) for k in members]
    free = list(allocatable)
    rules = left.rules
    taken = _assign_shares(left, bin_type, some, free, scarce_extras) if rules.share else {}
    weights = [(s / most) ** rules.scarcity_exponent for s in scarce]
    _top_up(left.priced, members, counts, free, weights, taken)
    return [(k, taken[k]) for k in members if taken.get(k)]


def _assign_shares(
    left: PodsLeft,
    bin_type: int,
    some: _Members,
    free: list[int],
    scarce_extras: dict[int, float],
) -> dict[int, int]:
    """Return each class's share, by systematic rounding of the shares' running sum.

    Subtracts them from `free`.
    """
    priced, counts, members = left.priced, left.counts, some.classes
    cpu, memory, pods = priced.cpu, priced.memory, priced.pods
    leans = _leans(left, bin_type, some)
    all_cpu = all_memory = all_pods = 0.0
    for k, lean in zip(members, leans, strict=True):
        weighted_count = counts[k] * lean
        all_cpu += weighted_count * cpu[k]
        all_memory += weighted_count * memory[k]
        all_pods += weighted_count * pods[k]
    most = max(all_cpu / free[0], all_memory / free[1], all_pods / free[2])
    scale = left.rules.share / (most or 1.0)
    tries = ([lean * scale * shrink for lean in leans] for shrink in _SHRINK)
    dealt = (_round_shares(priced, members, counts, free, parts, scarce_extras) for parts in tries)
    return next(entry for entry in dealt if entry is not None)


def _round_shares(
    priced: PricedProblem,
    members: Sequence[int],
    counts: Sequence[int],
    free: list[int],
    parts: Sequence[float],
    scarce_extras: dict[int, float],
) -> dict[int, int] | None:
    """Return the rounded parts of each class's pods, or None when they do not fit."""
    cpu, memory, pods, extras = priced.cpu, priced.memory, priced.pods, priced.demand.extras
    left_cpu, left_memory, left_pods = free[:3]
    rest = free[3:]
    taken: dict[int, int] = {}
    running, given = 0.5, 0
    for k, part in zip(members, parts, strict=True):
        count = counts[k]
        own = part
        if extras[k]:
            own = min([own, *[scarce_extras.get(place, 1.0) for place, _ in extras[k]]])
        running += own * count if own < 1.0 else count
        n = int(running) - given
        if n <= 0:
            continue
        given += n
        n = min(n, count)
        for place, amount in extras[k]:
            n = min(n, rest[place] // amount)
            rest[place] -= n * amount
        taken[k] = n
        left_cpu -= n * cpu[k]
        left_memory -= n * memory[k]
        left_pods -= n * pods[k]
    if left_cpu < 0 or left_memory < 0 or left_pods < 0:
        return None
    free[:] = [left_cpu, left_memory, left_pods, *rest]
    return taken


def _leans(left: PodsLeft, bin_type: int, some: _Members) -> list[float]:
    """Return what each class's share is multiplied by.

    A class's lean s (`memory_lean`) is the memory part of its value less the cpu part. Shares are
    multiplied by 1 + theta s, with theta such that cpu and memory are used up together: (Dc + theta
    Sc) / C = (Dm + theta Sm) / M, D being demand and S demand times lean.
    """
    priced, most_lean, members = left.priced, left.rules.most_lean, some.classes
    leans, totals = some.leans, some.totals
    shares = priced.dual_prices.shares.get(bin_type, ())
    if len(shares) > 1:
        group, signature = priced.dual_prices.group, priced.demand.signature
        top = max(shares) or 1.0
        parts = [max(share / top, _LEAST_SHARE) for share in shares]
        leans = [lean * parts[group[signature[k]]] for k, lean in zip(members, leans, strict=True)]
        totals = _totals(priced, members, left.counts, leans)
    if not most_lean:
        return leans
    cpus, memories, turned_cpus, turned_memories = totals
    bin_cpu, bin_memory = priced.bin_types[bin_type].allocatable[:2]
    turn = turned_cpus / bin_cpu - turned_memories / bin_memory
    theta = (memories / bin_memory - cpus / bin_cpu) / turn if turn else 0.0
    theta = max(-most_lean, min(most_lean, theta))
    memory_lean = priced.memory_lean
    return [
        lean * max(1.0 + theta * memory_lean[k], _LEAST_LEAN)
        for k, lean in zip(members, leans, strict=True)
    ]


def _totals(
    priced: PricedProblem, members: Sequence[int], counts: Sequence[int], leans: Sequence[float]
) -> tuple[float, float, float, float]:
    """Return the cpu and memory of some pods times `leans`, then the same times lean."""
    cpu, memory, memory_lean = priced.cpu, priced.memory, priced.memory_lean
    cpus = memories = turned_cpus = turned_memories = 0.0
    for k, lean in zip(members, leans, strict=True):
        weighted_count, own_lean = counts[k] * lean, memory_lean[k]
        cpus += weighted_count * cpu[k]
        memories += weighted_count * memory[k]
        turned_cpus += weighted_count * cpu[k] * own_lean
        turned_memories += weighted_count * memory[k] * own_lean
    return cpus, memories, turned_cpus, turned_memories


def _top_up(
    priced: PricedProblem,
    members: Sequence[int],
    counts: Sequence[int],
    free: list[int],
    weights: Sequence[float],
    taken: dict[int, int],
) -> None:
    """Add pods to `taken` while any fits, highest value per resources first, half at a time."""
    cpu, memory, pods, values = priced.cpu, priced.memory, priced.pods, priced.values
    extras = priced.demand.extras
    left_cpu, left_memory, left_pods = free[:3]
    rest = free[3:]
    seen = _sampled(
        [
            k
            for k in members
            if cpu[k] <= left_cpu and memory[k] <= left_memory and counts[k] > taken.get(k, 0)
        ]
    )
    while seen:
        per_cpu = weights[0] / (left_cpu or 1)
        per_memory = weights[1] / (left_memory or 1)
        per_pod = weights[2] / (left_pods or 1)
        seen = [
            k
            for k in seen
            if cpu[k] <= left_cpu
            and memory[k] <= left_memory
            and pods[k] <= left_pods
            and (not extras[k] or all(amount <= rest[place] for place, amount in extras[k]))
        ]
        scores = [
            values[k] / (per_cpu * cpu[k] + per_memory * memory[k] + per_pod * pods[k])
            for k in seen
        ]
        if not scores:
            return
        chosen = seen[scores.index(max(scores))]
        had = taken.get(chosen, 0)
        n = min(
            counts[chosen] - had,
            left_cpu // cpu[chosen],
            left_memory // memory[chosen],
            left_pods // pods[chosen],
            *[rest[place] // amount for place, amount in extras[chosen]],
        )
        n = (n + 1) // 2
        taken[chosen] = had + n
        left_cpu -= n * cpu[chosen]
        left_memory -= n * memory[chosen]
        left_pods -= n * pods[chosen]
        for place, amount in extras[chosen]:
            rest[place] -= n * amount
        if had + n == counts[chosen]:
            seen.remove(chosen)


def _sampled(fitting: list[int]) -> list[int]:
    """Return the classes to try: the smallest ones and an even sample of the others."""
    if len(fitting) <= 2 * _LOOKED_AT:
        return fitting
    large = fitting[:-_LOOKED_AT]
    step = len(large) / _LOOKED_AT
    return [large[int(i * step)] for i in range(_LOOKED_AT)] + fitting[-_LOOKED_AT:]
