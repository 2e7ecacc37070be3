"""The priced problem: what all search procedures share (item classes, bin types, dual prices).

Also the patterns that plans are made of.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from math import isclose
from operator import le
from typing import Final, NamedTuple

from msgspec import Struct, field

from shared.model.values import replace
from shared.packing.bin_types import BinType
from shared.packing.bound.resource_prices import ResourcePrices, find_prices
from shared.packing.demand import Demand

_FEW_GROUPS: Final = 8  # with fewer, a warm start is no faster
Contents = tuple[tuple[int, int], ...]


class Pattern(NamedTuple):
    """Nodes of one bin type with the same contents: (class index, count), by class."""

    bin_type: int
    contents: Contents
    copies: int = 1


class PricedProblem(Struct, frozen=True, kw_only=True):
    """Everything that stays the same while plans are tried.

    Attributes:
        cpu: Per class, millicores of one pod, at least 1. Only for division while filling nodes;
            use `needs` to check whether a bin holds some pods.
        memory: The same in bytes.
        pods: The same for the resource `pods`.
        values: Per class, the value of one pod at the dual prices.
        prices: Per bin type, the price by which plans are compared.
        max_return: Per bin type, the value of its allocatable divided by its price: no filling
            returns more.
        by_max_return: Bin types by falling `max_return`.
        by_price: Bin types by rising price.
        by_value: Classes by falling value.
        expected_value: Per bin type, the value per price expected of a filling before one is tried.
        memory_lean: Per class, the memory part of its value less the cpu part, from -1 to 1.
        with_extras: Classes that request more than cpu, memory and `pods`.
    """

    demand: Demand
    dual_prices: ResourcePrices
    bin_types: tuple[BinType, ...]
    cpu: tuple[int, ...]
    memory: tuple[int, ...]
    pods: tuple[int, ...]
    values: tuple[float, ...]
    prices: tuple[int, ...]
    max_return: tuple[float, ...]
    by_max_return: tuple[int, ...]
    by_price: tuple[int, ...]
    by_value: tuple[int, ...]
    expected_value: tuple[float, ...]
    memory_lean: tuple[float, ...]
    with_extras: tuple[int, ...]
    _members: dict[int, list[int]] = field(default_factory=dict)
    _alike: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[int]] = field(
        default_factory=dict
    )
    _sizes: list[list[int]] = field(default_factory=list)
    _powers: dict[float, list[float]] = field(default_factory=dict)
    _fits: dict[int, "_CheapestFit"] = field(default_factory=dict)

    def classes_that_fit(self, bin_type: int) -> list[int]:
        """Return the classes of which a pod fits the bin type, by falling value.

        Bin types that the same classes fit often have the same list.
        """
        known = self._members.get(bin_type)
        if known is None:
            entry = self.bin_types[bin_type]
            demand, extras = self.demand, entry.allocatable[3:]
            # Between the same two sizes of pods, the same pods fit.
            if not self._sizes:
                columns = (self.cpu, self.memory, self.pods)
                self._sizes.extend([sorted(set(column)) for column in columns])
            top_cpu, top_memory, top_pods = entry.allocatable[:3]
            tops = tuple(map(bisect_right, self._sizes, entry.allocatable))
            known = self._alike.get((entry.signatures, tops, extras))
            if known is None:
                known = self._alike[entry.signatures, tops, extras] = [
                    k
                    for k in self.by_value
                    if entry.signatures >> demand.signature[k] & 1
                    and self.cpu[k] <= top_cpu
                    and self.memory[k] <= top_memory
                    and self.pods[k] <= top_pods
                    and all(amount <= extras[place] for place, amount in demand.extras[k])
                ]
            self._members[bin_type] = known
        return known

    def powers(self, exponent: float) -> list[float]:
        """Return the value of one pod of each class, at least 1, to the power of an exponent."""
        if exponent not in self._powers:
            self._powers[exponent] = [max(value, 1.0) ** exponent for value in self.values]
        return self._powers[exponent]

    def needs(self, contents: Iterable[tuple[int, int]]) -> tuple[list[int], int]:
        """Return total requests by resource of some contents, and their signatures as a mask."""
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
        """Return the cheapest bin type that holds the amounts, or -1.

        Args:
            needs: Amounts by resource.
            signatures: Signatures that must be allowed on it, as a mask.
            below: Return -1 unless it is cheaper than this.
        """
        steps = self._fits.get(signatures)
        if steps is None:
            steps = self._fits[signatures] = _CheapestFit(self, signatures)
        bin_type = steps.first(needs)
        return (
            -1
            if bin_type >= 0 and below is not None and self.prices[bin_type] >= below
            else bin_type
        )

    def right_size(self, contents: Iterable[tuple[int, int]], bin_type: int) -> int:
        """Return the cheapest bin type that holds the contents; `bin_type` if none is cheaper."""
        needs, signatures = self.needs(contents)
        found = self.cheapest(needs, signatures, self.prices[bin_type])
        return bin_type if found < 0 else found

    def value_of(self, counts: Sequence[int]) -> float:
        """Return the value of some pods."""
        return sum([n * value for n, value in zip(counts, self.values, strict=True)])

    def cost(self, patterns: Iterable[Pattern]) -> int:
        """Return the sum of the prices by which a plan is compared."""
        return sum(self.prices[entry.bin_type] * entry.copies for entry in patterns)


class _CheapestFit:
    """The bin types open to some signatures, by price, and the first that holds given amounts.

    Requests between the same two sizes have the same answer, so answers are cached by size.
    """

    __slots__ = ("_allocatable", "_beyond", "_bin_types", "_columns", "_first")

    def __init__(self, priced: PricedProblem, signatures: int) -> None:
        bin_types = priced.bin_types
        self._bin_types = [t for t in priced.by_price if not signatures & ~bin_types[t].signatures]
        self._allocatable = [bin_types[t].allocatable for t in self._bin_types]
        columns = list(zip(*self._allocatable, strict=True))[:3] or [(), (), ()]
        self._columns = [sorted(set(column)) for column in columns]
        self._first: dict[tuple[int, int, int], int] = {}
        self._beyond: dict[tuple[int, int, int], dict[tuple[int, ...], int]] = {}

    def first(self, needs: Sequence[int]) -> int:
        """Return the first bin type that holds the amounts, or -1."""
        cpus, memories, places = self._columns
        cpu, memory, pods = needs[0], needs[1], needs[2]
        key = (bisect_left(cpus, cpu), bisect_left(memories, memory), bisect_left(places, pods))
        at = self._first.get(key)
        if at is None:
            at = self._first[key] = self._next(0, needs[:3])
        if len(needs) > 3 and any(needs[3:]):
            extras = tuple(needs[3:])
            known = self._beyond.setdefault(key, {})
            if extras not in known:
                known[extras] = self._next(at, needs)
            at = known[extras]
        return self._bin_types[at] if at < len(self._bin_types) else -1

    def _next(self, at: int, needs: Sequence[int]) -> int:
        for number in range(at, len(self._allocatable)):
            if all(map(le, needs, self._allocatable[number])):
                return number
        return len(self._allocatable)


class Solution(NamedTuple):
    """A plan.

    Attributes:
        priced: The priced problem that its bin types belong to.
        patterns: The nodes to buy.
        procedure: Name of the procedure that found it.
        lower_bound: A lower bound by comparison prices; None if not computed.
    """

    priced: PricedProblem
    patterns: list[Pattern]
    procedure: str
    lower_bound: int | None


def price_problem(
    demand: Demand, bin_types: Sequence[BinType], dual_prices: ResourcePrices, prices: Sequence[int]
) -> PricedProblem:
    """Return the priced problem for given dual prices and comparison prices."""
    values = tuple([dual_prices.value_of_class(demand, k) for k in range(len(demand.cpu))])
    ceilings = []
    for bin_type, price in zip(bin_types, prices, strict=True):
        groups = sorted(
            {g for s, g in enumerate(dual_prices.group) if bin_type.signatures >> s & 1}
        )
        total = sum(
            amount * max(dual_prices.values[g][place] for g in groups)
            for place, amount in enumerate(bin_type.allocatable)
            if amount
        )
        ceilings.append(total / price)
    numbers = range(len(bin_types))
    return PricedProblem(
        demand=demand,
        dual_prices=dual_prices,
        bin_types=tuple(bin_types),
        cpu=tuple([max(amount, 1) for amount in demand.cpu]),
        memory=tuple([max(amount, 1) for amount in demand.memory]),
        pods=tuple([max(amount, 1) for amount in demand.pods]),
        values=values,
        prices=tuple(prices),
        max_return=tuple(ceilings),
        by_max_return=tuple(sorted(numbers, key=lambda t: (-ceilings[t], t))),
        by_price=tuple(sorted(numbers, key=lambda t: (prices[t], t))),
        expected_value=tuple(ceilings),
        with_extras=tuple([k for k, some in enumerate(demand.extras) if some]),
        memory_lean=tuple(
            [_memory_lean_of(demand, dual_prices, k, values[k]) for k in range(len(values))]
        ),
        by_value=tuple(sorted(range(len(values)), key=lambda k: (-values[k], k))),
    )


def restrict(priced: PricedProblem, some: Sequence[int]) -> PricedProblem:
    """Return the priced problem of some of the classes alone, renumbered in the given order."""
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
        memory_lean=tuple([priced.memory_lean[k] for k in some]),
        with_extras=tuple([k for k, extras in enumerate(smaller.extras) if extras]),
        _members={},
        _alike={},
        _sizes=[],
        _powers={},
    )


def buy_copies(
    priced: PricedProblem,
    bin_type: int,
    filling: Iterable[tuple[int, int]],
    counts: list[int],
    most: int,
) -> Pattern:
    """Return copies of a filled node on the cheapest bin type that holds it; reduce `counts`.

    Half of the copies that the counts allow, at most `most`: many equal nodes would change the mix.
    """
    contents = tuple(sorted(filling))
    bin_type = priced.right_size(contents, bin_type)
    copies = max(min(min([counts[k] // n for k, n in contents]) // 2, most), 1)
    for k, n in contents:
        counts[k] -= n * copies
    return Pattern(bin_type=bin_type, contents=contents, copies=copies)


def reprice(priced: PricedProblem, counts: Sequence[int]) -> PricedProblem:
    """Return the priced problem with dual prices for the pods that are left."""
    known = priced.dual_prices if len(priced.dual_prices.values) > _FEW_GROUPS else None
    dual_prices = find_prices(priced.demand, counts, priced.bin_types, priced.prices, known)
    if dual_prices.group == priced.dual_prices.group and all(
        isclose(a, b, rel_tol=1e-9)
        for value, other in zip(dual_prices.values, priced.dual_prices.values, strict=True)
        for a, b in zip(value, other, strict=True)
    ):
        return replace(priced, dual_prices=dual_prices)
    return price_problem(priced.demand, priced.bin_types, dual_prices, priced.prices)


def _memory_lean_of(demand: Demand, dual_prices: ResourcePrices, k: int, value: float) -> float:
    """Return the memory part of a pod's value less the cpu part, from -1 to 1."""
    if value <= 0.0:
        return 0.0
    prices = dual_prices.values[dual_prices.group[demand.signature[k]]]
    return (prices[1] * demand.memory[k] - prices[0] * demand.cpu[k]) / value
