"""All ways to fill machines of which few ways are, listed once; the best of them is looked up."""

from collections.abc import Sequence
from typing import Final

from shared.packing.bound.whole_loads import Machine

_MOST_LOADS: Final = 2_000  # of a machine
_MOST_PODS: Final = 24  # of a load
_MOST_LOOKS: Final = 40_000  # to find those of a machine
_MOST_IN_ALL: Final = 6_000
_MOST_FAILED: Final = 3  # machines with too many loads, after which dearer ones are not tried
# Microseconds of a look, and of a load when the best is looked up.
_LOOK: Final = 0.7
_LOAD: Final = 0.5

Load = tuple[int, ...]  # the class of each pod


class ListedLoads:
    """Loads of some machines, each at the price of the cheapest machine that holds it.

    Attributes:
        loads: The loads, no pod more fitting beside any of them on its machine.
        kinds: The machine of each.
        prices: What that costs.
        machines: Of these all loads are listed, or a cheaper machine has them.
    """

    def __init__(self, machines: Sequence[Machine], most_steps: int) -> None:
        """List the loads of machines with few ways to fill them, cheapest first.

        Args:
            machines: Any.
            most_steps: Microseconds that it may take, about.
        """
        found: dict[Load, Machine] = {}
        self.machines: set[int] = set()
        self._looks = failed = 0
        for machine in sorted(machines, key=lambda machine: machine.price):
            looks = int(most_steps / _LOOK) - self._looks
            if looks <= 0 or len(found) > _MOST_IN_ALL or failed == _MOST_FAILED:
                break
            listing = _Listing(machine, min(looks, _MOST_LOOKS))
            self._looks += listing.looks
            failed += listing.ended
            if not listing.ended:
                self.machines.add(machine.kind)
                for load in listing.loads:
                    found.setdefault(load, machine)
        self.loads = list(found)
        self.kinds = [machine.kind for machine in found.values()]
        self.prices = [machine.price for machine in found.values()]

    @property
    def steps(self) -> int:
        """About how many microseconds it took."""
        return int(self._looks * _LOOK)

    @property
    def steps_of_looking(self) -> int:
        """About how many microseconds `best` takes."""
        return 1 + int(_LOAD * len(self.loads))

    def best(self, values: Sequence[float]) -> tuple[float, int]:
        """Return how many times its price a load is worth at most, and which load.

        Args:
            values: Worth of one pod by class.
        """
        worth_of = values.__getitem__
        ratios = [
            sum(map(worth_of, load)) / price
            for load, price in zip(self.loads, self.prices, strict=True)
        ]
        ratio = max(ratios)
        return ratio, ratios.index(ratio)


class _Listing:
    """All ways to fill a machine so that no pod fits beside.

    Attributes:
        loads: These.
        looks: How often it was asked how many pods of a class fit.
        ended: Whether they are too many, and some are missing.
    """

    __slots__ = ("_free", "_most_looks", "_of_classes", "ended", "loads", "looks")

    def __init__(self, machine: Machine, most_looks: int) -> None:
        self._of_classes = list(zip(machine.classes, machine.most, machine.needs, strict=True))
        self._free = list(machine.room)
        self.loads: list[Load] = []
        self.looks, self._most_looks, self.ended = 0, most_looks, False
        all_fit: Load = ()
        some = []
        for i, (k, most, needs) in enumerate(self._of_classes):
            if needs:
                some.append(i)
            else:
                all_fit += (k,) * most
        self._run(all_fit, some, ())

    def _run(self, load: Load, after: Sequence[int], fewer: Sequence[int]) -> None:
        """List what begins with a load and goes on with some classes; of others more may fit."""
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
