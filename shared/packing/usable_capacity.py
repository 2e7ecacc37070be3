"""What pods can use of a machine's room, as plain numbers.

Room beyond what all the pods that may run there ask for together can never be used. Machines that
differ in nothing else are then alike, and far fewer remain to be looked at.
"""

from collections.abc import Iterable, Sequence

from shared.packing.demand import Demand
from shared.packing.problem import PackingProblem, Shape

_BESIDE = 3  # cpu, memory and pods come first


def amounts_of(shapes: Iterable[Shape], demand: Demand) -> list[tuple[int, ...]]:
    """Return per shape all its amounts, in whole steps, in the order of names."""
    steps = tuple(zip(demand.names, demand.steps, strict=True))
    known: dict[int, tuple[int, ...]] = {}
    found = []
    for shape in shapes:
        identity = id(shape.allocatable)
        if identity not in known:
            has = dict(shape.allocatable.items)
            amounts = [(max(has.get(name, 0), 0), step) for name, step in steps]
            known[identity] = tuple([amount - amount % step for amount, step in amounts])
        found.append(known[identity])
    return found


def usable_amounts(
    problem: PackingProblem,
    demand: Demand,
    rooms: Sequence[tuple[int, ...]],
    open_to: Sequence[int],
    *,
    whole: bool,
) -> Sequence[tuple[int, ...]]:
    """Return per shape the amounts that the pods which may run on it can have.

    Args:
        problem: Whose shapes they are.
        demand: Its classes.
        rooms: Amounts by shape (`amounts_of`).
        open_to: Per shape, the signatures that may run on it, as a mask.
        whole: Whether cpu, memory and pods are cut to what can be used as well. Where a plan
            is made they are not: what is left of them may be of use to pods to come.
    """
    start = 0 if whole else _BESIDE
    if start == len(demand.names):
        return rooms
    by_signature = _asked(problem, demand)
    together: dict[int, list[int]] = {}
    found = []
    for room, signatures in zip(rooms, open_to, strict=True):
        if signatures not in together:
            rows = [row for s, row in enumerate(by_signature) if signatures >> s & 1]
            together[signatures] = [sum(column) for column in zip(*rows, strict=True)]
        found.append((*room[:start], *map(min, room[start:], together[signatures][start:])))
    return found


def _asked(problem: PackingProblem, demand: Demand) -> Sequence[Sequence[int]]:
    """Return what the pods of each signature ask for together."""
    found = [[0] * len(demand.names) for _ in demand.masks]
    for k, pod_class in enumerate(problem.classes):
        row = found[demand.signature[k]]
        # Counted as asking for 1 where it asks for nothing: filling nodes counts so, too.
        for place, amount in enumerate((demand.cpu[k], demand.memory[k], demand.pods[k])):
            row[place] += max(amount, 1) * pod_class.count
        for place, amount in demand.extras[k]:
            row[place + _BESIDE] += amount * pod_class.count
    return found
