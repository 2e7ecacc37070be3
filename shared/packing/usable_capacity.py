"""What pods can use of a machine's room, as plain numbers.

Room beyond what all the pods that may run there ask for together can never be used. Machines that
differ in nothing else are then alike, and far fewer remain to be looked at.
"""

from collections.abc import Sequence

from shared.packing.demand import Demand
from shared.packing.problem import PackingProblem, Shape

_BESIDE = 3  # cpu, memory and pods come first


class UsableCapacity:
    """Rooms of shapes; holds nothing but caches.

    Args:
        problem: Whose shapes are asked for.
        demand: Its classes.
        whole: Whether cpu, memory and pods are cut to what can be used as well. Where a plan
            is made they are not: what is left of them may be of use to pods to come.
    """

    def __init__(self, problem: PackingProblem, demand: Demand, *, whole: bool) -> None:
        self._steps = tuple(zip(demand.names, demand.steps, strict=True))
        self._from = 0 if whole else _BESIDE
        self._by_signature = _asked(problem, demand)
        self._asked: dict[int, tuple[int, ...]] = {}
        self._known: dict[int, tuple[int, ...]] = {}

    def all_of(self, shape: Shape) -> tuple[int, ...]:
        """Return all its amounts, in whole steps, in the order of names."""
        room = self._known.get(id(shape.allocatable))
        if room is None:
            amounts = dict(shape.allocatable.items)
            room = tuple(
                [
                    amount - amount % step
                    for name, step in self._steps
                    for amount in (max(amounts.get(name, 0), 0),)
                ]
            )
            self._known[id(shape.allocatable)] = room
        return room

    def of(self, shape: Shape, signatures: int) -> tuple[int, ...]:
        """Return the amounts that pods of some signatures can have."""
        room, start = self.all_of(shape), self._from
        if start == len(room):
            return room
        asked = self._asked.get(signatures)
        if asked is None:
            asked = self._asked[signatures] = self._together(signatures)
        return (*room[:start], *map(min, room[start:], asked[start:]))

    def _together(self, signatures: int) -> tuple[int, ...]:
        rows = [row for s, row in enumerate(self._by_signature) if signatures >> s & 1]
        return tuple([sum(column) for column in zip(*rows, strict=True)])


def _asked(problem: PackingProblem, demand: Demand) -> Sequence[Sequence[int]]:
    """Return what the pods of each signature ask for together."""
    found = [[0] * len(demand.names) for _ in demand.masks]
    for k, pod_class in enumerate(problem.classes):
        row = found[demand.signature[k]]
        # A class that asks for nothing of a basic resource is counted as asking for 1.
        for place, amount in enumerate((demand.cpu[k], demand.memory[k], demand.pods[k])):
            row[place] += max(amount, 1) * pod_class.count
        for place, amount in demand.extras[k]:
            row[place + _BESIDE] += amount * pod_class.count
    return found
