"""Which whole pods have the highest value together on one node: a multidimensional knapsack.

By branch and bound. The upper bound of a branch uses one constraint in place of all, with resources
weighted by their prices in the fractional linear program: pods by falling value per weight, as many
of each as fit alone, the last one in part (Source: Dantzig, "Discrete-variable extremum problems",
Operations Research 5, 1957, https://doi.org/10.1287/opre.5.2.266, read 2026-11-28). Weights and
values are integers, and any weights give a bound: what is proved does not depend on rounding in the
linear program.
"""

from collections.abc import Sequence
from heapq import nlargest
from math import inf
from typing import Final, NamedTuple

from shared.packing.bin_types import BinType
from shared.packing.bound.linear_program import solve_by_simplex

_MOST_ROWS: Final = 24  # the time of a step grows with their square
_FINE: Final = 62  # bits of the weights, of which the last are dropped: amounts differ in size
_DROPPED: Final = 22
# Microseconds of a visit to a class; of pricing, per class and resource.
_LOOK: Final = 0.7
_STEP: Final = 2.4

Needs = Sequence[tuple[int, int]]  # (resource position, amount)


class Knapsack:
    """The pricing problem of a bin type, for the classes of which a pod fits it.

    Attributes:
        bin_type: Its index.
        price: Of one node, in micro-dollars per hour.
        allocatable: Its amounts.
        classes: The classes.
        most: Pods of each that fit alone, at most as many as there are.
        needs: Requests of one pod of each, only of resources that do not suffice for all pods
            together.
    """

    __slots__ = (
        "_columns",
        "_places",
        "_prices",
        "allocatable",
        "bin_type",
        "classes",
        "most",
        "needs",
        "price",
    )  # fmt: skip

    def __init__(
        self, number: int, bin_type: BinType, pods: Sequence[tuple[int, int, Needs]]
    ) -> None:
        """Args: pods: (class, number of pods, requests of one pod) of the classes that fit."""
        self.bin_type, self.price, self.allocatable = number, bin_type.price, bin_type.allocatable
        self.classes = [k for k, _, _ in pods]
        self.most = [
            min([count, *[self.allocatable[place] // amount for place, amount in needs]])
            for _, count, needs in pods
        ]
        asked = [0] * len(self.allocatable)
        for n, (_, _, needs) in zip(self.most, pods, strict=True):
            for place, amount in needs:
                asked[place] += n * amount
        short = [place for place, amount in enumerate(asked) if amount > self.allocatable[place]]
        self.needs = [[entry for entry in needs if entry[0] in short] for _, _, needs in pods]
        self._places = nlargest(_MOST_ROWS, short, key=lambda p: asked[p] / self.allocatable[p])
        self._columns = [
            [dict(needs).get(place, 0) / self.allocatable[place] for place in self._places]
            for needs in self.needs
        ]
        self._prices: Sequence[float] = ()

    @property
    def steps_of_pricing(self) -> int:
        """About how many microseconds `reprice` takes."""
        return 1 + int(_STEP * len(self.classes) * len(self._places))

    def reprice(self, values: Sequence[float]) -> None:
        """Price the resources so that the bound on the value of a fractional filling is lowest."""
        values_in_order = [max(values[k], 0.0) for k in self.classes]
        rows = [1.0] * len(self._places)
        slack = [[1.0 if row == j else 0.0 for row in range(len(rows))] for j in range(len(rows))]
        _, self._prices = solve_by_simplex(
            [*values_in_order, *[0.0 for _ in rows]],
            [*self._columns, *slack],
            rows,
            [*map(float, self.most), *[inf for _ in rows]],
        )

    def fractional_value(self, values: Sequence[float]) -> float:
        """Return about the highest value of a fractional filling, by the current prices."""
        prices = self._prices
        total = sum(prices)
        for k, n, column in zip(self.classes, self.most, self._columns, strict=True):
            beyond = values[k]
            for price, part in zip(prices, column, strict=False):
                beyond -= price * part
            if beyond > 0.0:
                total += n * beyond
        return total

    def weights(self) -> list[tuple[int, int]]:
        """Return (resource position, weight per unit) where there is a price; any are valid."""
        total = sum(self._prices) or 1.0
        return [
            (place, int(price / total * (1 << _FINE) / self.allocatable[place]))
            for place, price in zip(self._places, self._prices, strict=False)
            if price
        ]

    def best_load(
        self, values: Sequence[int], threshold: int, steps: int, longer: int | None = None
    ) -> "Load":
        """Return the most valuable load, if above a threshold, and an upper bound for all.

        Args:
            values: Value of one pod by class, at least 0.
            threshold: Loads of at most this value are not searched for.
            steps: Microseconds that the search may take, about.
            longer: The same once a load is found; None for no difference.
        """
        search = _BranchAndBound(self, values, threshold, steps if longer is None else longer)
        return search.result(steps)


class Load(NamedTuple):
    """What a search found.

    Attributes:
        contents: Pods by class; empty where no load is worth more than the threshold.
        value_bound: No load is worth more than this; exact.
        is_complete: Whether the search was exhaustive.
        steps: What it took, in microseconds, about.
    """

    contents: dict[int, int]
    value_bound: int
    is_complete: bool
    steps: int


class _BranchAndBound:
    """A search, depth first: as many as fit of the next class, then one less, and so on."""

    __slots__ = ("_above", "_best", "_counts", "_free", "_highest", "_left", "_longer", "_looks",
                 "_most_looks", "_of_classes")  # fmt: skip

    def __init__(
        self, knapsack: Knapsack, values: Sequence[int], threshold: int, longer: int
    ) -> None:
        weights = dict(knapsack.weights())
        classes = []
        for k, most, needs in zip(knapsack.classes, knapsack.most, knapsack.needs, strict=True):
            weight = sum([weights.get(place, 0) * a for place, a in needs]) >> _DROPPED
            if values[k]:
                rank = values[k] / weight if weight else inf
                classes.append((-rank, k, values[k], weight, most, needs))
        self._of_classes = [entry[1:] for entry in sorted(classes, key=lambda entry: entry[:2])]
        self._left = (
            sum([w * knapsack.allocatable[place] for place, w in weights.items()]) >> _DROPPED
        )
        self._free = list(knapsack.allocatable)
        self._counts = [0] * len(classes)
        self._best: list[int] = []
        self._above, self._highest = threshold, 0
        self._looks, self._most_looks, self._longer = 0, 0, int(longer / _LOOK)

    def result(self, steps: int) -> Load:
        """Search; see `Knapsack.best_load`."""
        looks = self._most_looks = int(steps / _LOOK)
        self._run(0, self._left, 0)
        found = zip(self._of_classes, self._best, strict=False)
        return Load(
            contents={entry[0]: n for entry, n in found if n},
            value_bound=self._highest,
            is_complete=self._looks <= looks,
            steps=1 + int(self._looks * _LOOK),
        )

    def _run(self, at: int, left: int, value: int) -> None:
        """Search all loads with what is taken so far and more of the classes from `at` on."""
        first, most, upper_bound = self._upper_bound(at, left, value)
        if first < 0:
            self._highest = max(self._highest, value)
            if value > self._above:
                self._above, self._best = value, self._counts[:]
                self._most_looks = min(self._most_looks, self._looks + self._longer)
            return
        if upper_bound <= self._above or self._looks > self._most_looks:
            self._highest = max(self._highest, upper_bound)
            return
        _, each, weight, _, needs = self._of_classes[first]
        free = self._free
        for place, amount in needs:
            free[place] -= amount * most
        for n in range(most, -1, -1):
            self._counts[first] = n
            self._run(first + 1, left - weight * n, value + each * n)
            if n:
                for place, amount in needs:
                    free[place] += amount

    def _upper_bound(self, at: int, left: int, value: int) -> tuple[int, int, int]:
        """Return the next class that fits, how many of it, and an upper bound for all loads."""
        free, classes = self._free, self._of_classes
        first, of_first, number = -1, 0, at
        for number in range(at, len(classes)):
            _, each, weight, most, needs = classes[number]
            for place, amount in needs:
                fitting = free[place] // amount
                if fitting < most:  # noqa: PLR1730 -- a call of min takes three times as long
                    most = fitting
            if not most:
                continue
            if first < 0:
                first, of_first = number, most
            if weight * most > left:
                value += -(-each * left // weight)
                break
            value += each * most
            left -= weight * most
        self._looks += number - at + 2
        return first, of_first, value
