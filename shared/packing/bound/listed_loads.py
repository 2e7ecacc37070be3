"""Lists all loads of bin types that have few, once; the best of them is then looked up."""

from collections.abc import Sequence
from typing import Final

from shared.packing.bound.whole_loads import Knapsack

_MOST_LOADS: Final = 2_000  # of a bin type
_MOST_PODS: Final = 24  # of a load
_MOST_LOOKS: Final = 40_000  # visits of classes, to find those of a bin type
_MOST_IN_ALL: Final = 6_000
_MOST_FAILED: Final = 3  # bin types with too many loads, after which no dearer ones are tried
# Microseconds of a visit, and of a load when the best is looked up.
_LOOK: Final = 0.7
_LOAD: Final = 0.5

ListedLoad = tuple[int, ...]  # the class of each pod


class ListedLoads:
    """Loads of some bin types, each at the price of the cheapest bin type that holds it.

    Attributes:
        loads: The loads; no further pod fits beside any of them.
        bin_types: The bin type of each load.
        prices: The price of each load's bin type.
        listed: Bin types all of whose loads are listed, some for a cheaper bin type.
    """

    def __init__(self, knapsacks: Sequence[Knapsack], most_steps: int) -> None:
        """List the loads of bin types that have few, cheapest first.

        Args:
            knapsacks: Of any bin types.
            most_steps: Microseconds that it may take, about.
        """
        found: dict[ListedLoad, Knapsack] = {}
        self.listed: set[int] = set()
        self._looks = failed = 0
        for knapsack in sorted(knapsacks, key=lambda knapsack: knapsack.price):
            looks = int(most_steps / _LOOK) - self._looks
            if looks <= 0 or len(found) > _MOST_IN_ALL or failed == _MOST_FAILED:
                break
            listing = _Listing(knapsack, min(looks, _MOST_LOOKS))
            self._looks += listing.looks
            failed += listing.ended
            if not listing.ended:
                self.listed.add(knapsack.bin_type)
                for load in listing.loads:
                    found.setdefault(load, knapsack)
        self.loads = list(found)
        self.bin_types = [knapsack.bin_type for knapsack in found.values()]
        self.prices = [knapsack.price for knapsack in found.values()]

    @property
    def steps(self) -> int:
        """About how many microseconds it took."""
        return int(self._looks * _LOOK)

    @property
    def steps_of_best(self) -> int:
        """About how many microseconds `best` takes."""
        return 1 + int(_LOAD * len(self.loads))

    def best(self, values: Sequence[float]) -> tuple[float, int]:
        """Return the highest ratio of a load's value to its price, and the index of the load.

        Args:
            values: Value of one pod by class.
        """
        worth_of = values.__getitem__
        ratios = [
            sum(map(worth_of, load)) / price
            for load, price in zip(self.loads, self.prices, strict=True)
        ]
        ratio = max(ratios)
        return ratio, ratios.index(ratio)


class _Listing:
    """All loads of a bin type beside which no further pod fits.

    Attributes:
        loads: The loads found.
        looks: How often it was computed how many pods of a class fit.
        ended: Whether there are too many, and some are missing.
    """

    __slots__ = ("_free", "_most_looks", "_of_classes", "ended", "loads", "looks")

    def __init__(self, knapsack: Knapsack, most_looks: int) -> None:
        self._of_classes = list(zip(knapsack.classes, knapsack.most, knapsack.needs, strict=True))
        self._free = list(knapsack.allocatable)
        self.loads: list[ListedLoad] = []
        self.looks, self._most_looks, self.ended = 0, most_looks, False
        all_fit: ListedLoad = ()
        some = []
        for i, (k, most, needs) in enumerate(self._of_classes):
            if needs:
                some.append(i)
            else:
                all_fit += (k,) * most
        self._run(all_fit, some, ())

    def _run(self, load: ListedLoad, after: Sequence[int], fewer: Sequence[int]) -> None:
        """List the loads that add pods of `after` to `load` and leave no more of `fewer` to fit."""
        self.looks += len(after) + len(fewer)
        fitting = [(i, most) for i in after if (most := self._fitting(i))]
        if not fitting:
            if not any(map(self._fitting, fewer)):
                self.loads.append(load)
            self.ended = len(self.loads) > _MOST_LOADS or len(load) > _MOST_PODS
            return
        first, most = fitting[0]
        rest = [i for i, _ in fitting[1:]]
        k, _, needs = self._of_classes[first]
        free = self._free
        for place, amount in needs:
            free[place] -= amount * most
        for n in range(most, -1, -1):
            self.ended |= self.looks > self._most_looks
            if not self.ended:
                self._run(load + (k,) * n, rest, fewer if n == most else (*fewer, first))
            if n:
                for place, amount in needs:
                    free[place] += amount

    def _fitting(self, i: int) -> int:
        _, most, needs = self._of_classes[i]
        free = self._free
        return min([most, *[free[place] // amount for place, amount in needs]])
