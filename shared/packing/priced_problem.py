"""The ground of a search: what all procedures share, and the nodes their plans are made of.

Classes and kinds as columns, the worth of pods, who fits where.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import isclose
from operator import le
from typing import Final, NamedTuple

from shared.packing.bound.resource_prices import ResourcePrices, find_prices
from shared.packing.demand import Demand
from shared.packing.machine_kinds import MachineKind

_FEW_GROUPS: Final = 8  # fewer are solved as fast from the start
Contents = tuple[tuple[int, int], ...]


class Planned(NamedTuple):
    """Nodes of one kind with the same contents: (class index, count), by class."""

    kind: int
    contents: Contents
    copies: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedProblem:
    """Everything that stays the same while plans are tried.

    Attributes:
        cpu: Per class, millicores of one pod, at least 1, which makes division safe: for filling
            nodes alone. Whether a node holds some pods is told by what they ask for (`needs`).
        memory: The same in bytes.
        pods: The same in pod places.
        values: Per class, the worth of one pod at the resource prices.
        prices: Per kind, what plans are compared by.
        ceilings: Per kind, worth of all its room per price: no filling returns more.
        ranked: Kinds by falling ceiling.
        by_price: Kinds by rising price.
        by_value: Classes by falling worth.
        hopes: Per kind, what a filling is expected to return per price before one was tried.
        slants: Per class, the memory part of its worth less the cpu part, from -1 to 1.
        with_extras: Classes that ask for more than cpu, memory and a pod place.
    """

    demand: Demand
    worth: ResourcePrices
    kinds: tuple[MachineKind, ...]
    cpu: tuple[int, ...]
    memory: tuple[int, ...]
    pods: tuple[int, ...]
    values: tuple[float, ...]
    prices: tuple[int, ...]
    ceilings: tuple[float, ...]
    ranked: tuple[int, ...]
    by_price: tuple[int, ...]
    by_value: tuple[int, ...]
    hopes: tuple[float, ...]
    slants: tuple[float, ...]
    with_extras: tuple[int, ...]
    _members: dict[int, list[int]] = field(default_factory=dict)
    _powers: dict[float, list[float]] = field(default_factory=dict)
    _steps: dict[int, "_Steps"] = field(default_factory=dict)

    def members(self, kind: int) -> list[int]:
        """Return the classes one pod of which fits the kind, by falling worth."""
        known = self._members.get(kind)
        if known is None:
            one = self.kinds[kind]
            demand = self.demand
            top_cpu, top_memory, top_pods = one.room[:3]
            known = [
                k
                for k in self.by_value
                if one.signatures >> demand.signature[k] & 1
                and self.cpu[k] <= top_cpu
                and self.memory[k] <= top_memory
                and self.pods[k] <= top_pods
                and all(amount <= one.room[place + 3] for place, amount in demand.extras[k])
            ]
            self._members[kind] = known
        return known

    def powers(self, exponent: float) -> list[float]:
        """Return the worth of one pod of each class, at least 1, to the power of an exponent."""
        if exponent not in self._powers:
            self._powers[exponent] = [max(value, 1.0) ** exponent for value in self.values]
        return self._powers[exponent]

    def needs(self, contents: Iterable[tuple[int, int]]) -> tuple[list[int], int]:
        """Return amounts by resource and the signatures, as a mask, of some contents."""
        demand = self.demand
        total = [0] * len(demand.names)
        signatures = 0
        for k, count in contents:
            total[0] += demand.cpu[k] * count
            total[1] += demand.memory[k] * count
            total[2] += demand.pods[k] * count
            for place, amount in demand.extras[k]:
                total[place + 3] += amount * count
            signatures |= 1 << demand.signature[k]
        return total, signatures

    def cheapest(self, needs: Sequence[int], signatures: int, below: int | None = None) -> int:
        """Return the first kind by price that holds the amounts, or -1.

        Args:
            needs: Amounts by resource.
            signatures: Who must be allowed on it, as a mask.
            below: Stop at this price.
        """
        steps = self._steps.get(signatures)
        if steps is None:
            steps = self._steps[signatures] = _Steps(self, signatures)
        kind = steps.first(needs)
        return -1 if kind >= 0 and below is not None and self.prices[kind] >= below else kind

    def right_size(self, contents: Iterable[tuple[int, int]], kind: int) -> int:
        """Return the cheapest kind that holds the contents; the one given if none is cheaper."""
        needs, signatures = self.needs(contents)
        found = self.cheapest(needs, signatures, self.prices[kind])
        return kind if found < 0 else found

    def worth_of(self, counts: Sequence[int]) -> float:
        """Return the worth of some pods."""
        return sum([n * value for n, value in zip(counts, self.values, strict=True)])

    def cost(self, plan: Iterable[Planned]) -> int:
        """Return what a plan is compared by, before leftover room is valued."""
        return sum(self.prices[entry.kind] * entry.copies for entry in plan)


class _Steps:
    """The kinds open to some signatures, by price, and which one is the first for what is asked.

    Amounts between two that some kind has lead to the same kinds, so few answers are worked out.
    """

    __slots__ = ("_columns", "_first", "_kinds", "_rooms")

    def __init__(self, priced: PricedProblem, signatures: int) -> None:
        kinds = priced.kinds
        self._kinds = [t for t in priced.by_price if not signatures & ~kinds[t].signatures]
        self._rooms = [kinds[t].room for t in self._kinds]
        columns = list(zip(*self._rooms, strict=True))[:3] or [(), (), ()]
        self._columns = [sorted(set(column)) for column in columns]
        self._first: dict[tuple[int, int, int], int] = {}

    def first(self, needs: Sequence[int]) -> int:
        """Return the first kind that holds the amounts, or -1."""
        cpus, memories, places = self._columns
        cpu, memory, pods = needs[0], needs[1], needs[2]
        key = (bisect_left(cpus, cpu), bisect_left(memories, memory), bisect_left(places, pods))
        at = self._first.get(key)
        if at is None:
            at = self._first[key] = self._next(0, needs[:3])
        if len(needs) > 3 and any(needs[3:]):
            at = self._next(at, needs)
        return self._kinds[at] if at < len(self._kinds) else -1

    def _next(self, at: int, needs: Sequence[int]) -> int:
        for number in range(at, len(self._rooms)):
            if all(map(le, needs, self._rooms[number])):
                return number
        return len(self._rooms)


class Found(NamedTuple):
    """A plan.

    Attributes:
        priced: What its kinds belong to.
        plan: The nodes.
        name: The procedure that won.
        tight: A lower bound by planning prices; None where it was not asked for.
    """

    priced: PricedProblem
    plan: list[Planned]
    name: str
    tight: int | None


def make_ground(
    demand: Demand, kinds: Sequence[MachineKind], worth: ResourcePrices, prices: Sequence[int]
) -> PricedProblem:
    """Return the ground for some resource prices and planning prices."""
    values = tuple([worth.of_class(demand, k) for k in range(len(demand.cpu))])
    ceilings = []
    for kind, price in zip(kinds, prices, strict=True):
        groups = sorted({g for s, g in enumerate(worth.group) if kind.signatures >> s & 1})
        total = sum(
            amount * max(worth.values[g][place] for g in groups)
            for place, amount in enumerate(kind.room)
            if amount
        )
        ceilings.append(total / price)
    numbers = range(len(kinds))
    return PricedProblem(
        demand=demand,
        worth=worth,
        kinds=tuple(kinds),
        cpu=tuple([max(amount, 1) for amount in demand.cpu]),
        memory=tuple([max(amount, 1) for amount in demand.memory]),
        pods=tuple([max(amount, 1) for amount in demand.pods]),
        values=values,
        prices=tuple(prices),
        ceilings=tuple(ceilings),
        ranked=tuple(sorted(numbers, key=lambda t: (-ceilings[t], t))),
        by_price=tuple(sorted(numbers, key=lambda t: (prices[t], t))),
        hopes=tuple(ceilings),
        with_extras=tuple([k for k, some in enumerate(demand.extras) if some]),
        slants=tuple([_slant(demand, worth, k, values[k]) for k in range(len(values))]),
        by_value=tuple(sorted(range(len(values)), key=lambda k: (-values[k], k))),
    )


def narrow(priced: PricedProblem, some: Sequence[int]) -> PricedProblem:
    """Return the ground for some of the classes alone, numbered anew in the order given."""
    demand = priced.demand
    smaller = demand._replace(
        cpu=tuple([demand.cpu[k] for k in some]),
        memory=tuple([demand.memory[k] for k in some]),
        pods=tuple([demand.pods[k] for k in some]),
        extras=tuple([demand.extras[k] for k in some]),
        signature=tuple([demand.signature[k] for k in some]),
    )
    values = tuple([priced.values[k] for k in some])
    return replace(
        priced,
        demand=smaller,
        cpu=tuple([priced.cpu[k] for k in some]),
        memory=tuple([priced.memory[k] for k in some]),
        pods=tuple([priced.pods[k] for k in some]),
        values=values,
        by_value=tuple(sorted(range(len(some)), key=lambda k: (-values[k], k))),
        slants=tuple([priced.slants[k] for k in some]),
        with_extras=tuple([k for k, extras in enumerate(smaller.extras) if extras]),
        _members={},
        _powers={},
    )


def commit(
    priced: PricedProblem,
    kind: int,
    filling: Iterable[tuple[int, int]],
    counts: list[int],
    most: int,
) -> Planned:
    """Return copies of a filled node, on the cheapest kind that holds it; takes them off `counts`.

    Half of the copies the counts allow, at most `most`: equal nodes in number would change the mix.
    """
    contents = tuple(sorted(filling))
    kind = priced.right_size(contents, kind)
    copies = max(min(min([counts[k] // n for k, n in contents]) // 2, most), 1)
    for k, n in contents:
        counts[k] -= n * copies
    return Planned(kind=kind, contents=contents, copies=copies)


def revalue(priced: PricedProblem, counts: Sequence[int]) -> PricedProblem:
    """Return the ground with resource prices for what is left of the classes."""
    known = priced.worth if len(priced.worth.values) > _FEW_GROUPS else None
    worth = find_prices(priced.demand, counts, priced.kinds, priced.prices, known)
    if worth.group == priced.worth.group and all(
        isclose(a, b, rel_tol=1e-9)
        for value, other in zip(worth.values, priced.worth.values, strict=True)
        for a, b in zip(value, other, strict=True)
    ):
        return replace(priced, worth=worth)
    return make_ground(priced.demand, priced.kinds, worth, priced.prices)


def _slant(demand: Demand, worth: ResourcePrices, k: int, value: float) -> float:
    """Return the memory part of a pod's worth less the cpu part, from -1 to 1."""
    if value <= 0.0:
        return 0.0
    prices = worth.values[worth.group[demand.signature[k]]]
    return (prices[1] * demand.memory[k] - prices[0] * demand.cpu[k]) / value
