"""Which pods, each whole, are worth most together on one machine: a knapsack of several resources.

By branch and bound. What a part of the search can return at most is told by one constraint in
place of all, the resources weighed as the linear programme in parts prices them: pods by falling
worth per weight, as many of each as fit alone, the last one in part (Source: Dantzig,
"Discrete-variable extremum problems", Operations Research 5, 1957,
https://doi.org/10.1287/opre.5.2.266, read 2026-11-28). Weights and worths are whole numbers, and
any weights give a bound: what is proved does not depend on how the programme was rounded.
"""

from collections.abc import Sequence
from heapq import nlargest
from math import inf
from typing import Final, NamedTuple

from shared.packing.bound.simplex import best_mix
from shared.packing.machine_kinds import MachineKind

_MOST_ROWS: Final = 24  # a step of the programme takes the square of its rows
_FINE: Final = 62  # bits of the weights, of which the last are dropped: amounts differ in size
_DROPPED: Final = 22
# Microseconds of a look at a class; of pricing, per class and resource.
_LOOK: Final = 0.7
_STEP: Final = 2.4

Needs = Sequence[tuple[int, int]]  # (resource position, amount)


class Machine:
    """A kind, for the classes of which a pod fits it.

    Attributes:
        kind: Its number.
        price: Of one, in micro-dollars per hour.
        room: Its amounts.
        classes: The classes.
        most: Pods of each that fit alone, at most as many as there are.
        needs: What one pod of each asks for, of what all pods together would have too little.
    """

    __slots__ = ("_columns", "_places", "_prices", "classes", "kind", "most", "needs", "price",
                 "room")  # fmt: skip

    def __init__(
        self, number: int, kind: MachineKind, pods: Sequence[tuple[int, int, Needs]]
    ) -> None:
        """Args: pods: (class, how many there are, what one asks for) of the classes that fit."""
        self.kind, self.price, self.room = number, kind.price, kind.room
        self.classes = [k for k, _, _ in pods]
        self.most = [
            min([count, *[self.room[place] // amount for place, amount in needs]])
            for _, count, needs in pods
        ]
        asked = [0] * len(self.room)
        for n, (_, _, needs) in zip(self.most, pods, strict=True):
            for place, amount in needs:
                asked[place] += n * amount
        short = [place for place, amount in enumerate(asked) if amount > self.room[place]]
        self.needs = [[entry for entry in needs if entry[0] in short] for _, _, needs in pods]
        self._places = nlargest(_MOST_ROWS, short, key=lambda p: asked[p] / self.room[p])
        self._columns = [
            [dict(needs).get(place, 0) / self.room[place] for place in self._places]
            for needs in self.needs
        ]
        self._prices: Sequence[float] = ()

    @property
    def steps_of_pricing(self) -> int:
        """About how many microseconds `reprice` takes."""
        return 1 + int(_STEP * len(self.classes) * len(self._places))

    def reprice(self, values: Sequence[float]) -> None:
        """Price the resources so that what the machine returns, filled in parts, is worth least."""
        worths = [max(values[k], 0.0) for k in self.classes]
        rows = [1.0] * len(self._places)
        left_over = [
            [1.0 if row == j else 0.0 for row in range(len(rows))] for j in range(len(rows))
        ]
        _, self._prices = best_mix(
            [*worths, *[0.0 for _ in rows]],
            [*self._columns, *left_over],
            rows,
            [*map(float, self.most), *[inf for _ in rows]],
        )

    def worth_in_parts(self, values: Sequence[float]) -> float:
        """Return what a filling in parts is worth at most, about, by the prices as they are."""
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
        """Return (place, weight of one unit) of the resources that have a price; any are good."""
        total = sum(self._prices) or 1.0
        return [
            (place, int(price / total * (1 << _FINE) / self.room[place]))
            for place, price in zip(self._places, self._prices, strict=False)
            if price
        ]

    def best_load(
        self, values: Sequence[int], above: int, steps: int, longer: int | None = None
    ) -> "Load":
        """Return the load worth most, if that is above a worth, and what none is worth more than.

        Args:
            values: Worth of one pod by class, at least 0.
            above: Loads of at most this worth are not looked for.
            steps: Microseconds that the search may take, about.
            longer: What it may take once a load is found; None for all of it.
        """
        search = _Search(self, values, above, steps if longer is None else longer)
        return search.result(steps)


class Load(NamedTuple):
    """What a search found.

    Attributes:
        contents: Pods by class; none where no load is worth more than what was asked.
        most_worth: No load is worth more than this; exact.
        ended: Whether the search looked everywhere.
        steps: What it took, in microseconds, about.
    """

    contents: dict[int, int]
    most_worth: int
    ended: bool
    steps: int


class _Search:
    """A search, depth first: as many as fit of the next class, then one less, and so on."""

    __slots__ = ("_above", "_best", "_counts", "_free", "_highest", "_left", "_longer", "_looks",
                 "_most_looks", "_of_classes")  # fmt: skip

    def __init__(self, machine: Machine, values: Sequence[int], above: int, longer: int) -> None:
        weights = dict(machine.weights())
        classes = []
        for k, most, needs in zip(machine.classes, machine.most, machine.needs, strict=True):
            weight = sum([weights.get(place, 0) * a for place, a in needs]) >> _DROPPED
            if values[k]:
                rank = values[k] / weight if weight else inf
                classes.append((-rank, k, values[k], weight, most, needs))
        self._of_classes = [entry[1:] for entry in sorted(classes, key=lambda entry: entry[:2])]
        self._left = sum([w * machine.room[place] for place, w in weights.items()]) >> _DROPPED
        self._free = list(machine.room)
        self._counts = [0] * len(classes)
        self._best: list[int] = []
        self._above, self._highest = above, 0
        self._looks, self._most_looks, self._longer = 0, 0, int(longer / _LOOK)

    def result(self, steps: int) -> Load:
        """Search; see `Machine.best_load`."""
        looks = self._most_looks = int(steps / _LOOK)
        self._run(0, self._left, 0)
        found = zip(self._of_classes, self._best, strict=False)
        return Load(
            contents={entry[0]: n for entry, n in found if n},
            most_worth=self._highest,
            ended=self._looks <= looks,
            steps=1 + int(self._looks * _LOOK),
        )

    def _run(self, at: int, left: int, worth: int) -> None:
        """Look at all loads with what is taken so far and more of the classes from `at` on."""
        first, most, hope = self._hope(at, left, worth)
        if first < 0:
            self._highest = max(self._highest, worth)
            if worth > self._above:
                self._above, self._best = worth, self._counts[:]
                self._most_looks = min(self._most_looks, self._looks + self._longer)
            return
        if hope <= self._above or self._looks > self._most_looks:
            self._highest = max(self._highest, hope)
            return
        _, each, weight, _, needs = self._of_classes[first]
        free = self._free
        for place, amount in needs:
            free[place] -= amount * most
        for n in range(most, -1, -1):
            self._counts[first] = n
            self._run(first + 1, left - weight * n, worth + each * n)
            if n:
                for place, amount in needs:
                    free[place] += amount

    def _hope(self, at: int, left: int, worth: int) -> tuple[int, int, int]:
        """Return the next class that fits, how many of it, and what no load is worth more than."""
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
                worth += -(-each * left // weight)
                break
            worth += each * most
            left -= weight * most
        self._looks += number - at + 2
        return first, of_first, worth
