"""What room that is there already takes off a lower bound: what need not be bought.

A bound says what every pod is worth. Pods in free room cost nothing, so the most that any filling
of that room is worth comes off: at most what its amounts are worth to the classes that may go
there, and at most what as many of their pods as fit are worth.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from shared.packing.demand import Demand
from shared.packing.free_nodes import useful_bins
from shared.packing.problem import PackingProblem

_MOST_LOOKS: Final = 40_000  # room by class; beyond, only amounts are compared


class FreeCapacity(NamedTuple):
    """Room of one bin.

    Attributes:
        amounts: In the order of `Demand.names`.
        classes: With pods, that may go there.
        most: Pods of each of them that fit alone; empty where that is too many to look at.
    """

    amounts: tuple[int, ...]
    classes: tuple[int, ...]
    most: tuple[int, ...] = ()


class FreeCapacities(NamedTuple):
    """Rooms with the classes that share them, apart from others: no class is in two parts."""

    parts: tuple[tuple[tuple[int, ...], tuple[FreeCapacity, ...]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def classes(self) -> frozenset[int]:
        """Classes that may go to any of them."""
        return frozenset([k for classes, _ in self.parts for k in classes])

    def too_many(self, counts: Sequence[int]) -> list[int]:
        """Return pods per class for which there is no room, had each class all of it alone."""
        left = list(counts)
        for classes, free in self.parts:
            if not all(room.most for room in free):
                for k in classes:
                    left[k] = 0
                continue
            for room in free:
                for k, n in zip(room.classes, room.most, strict=True):
                    left[k] = max(left[k] - n, 0)
        return left


NO_ROOM: Final = FreeCapacities()
RoomWorth = Callable[[FreeCapacity, Sequence[int]], int | None]


def free_rooms(problem: PackingProblem, demand: Demand, counts: Sequence[int]) -> FreeCapacities:
    """Return the room of the bins that could take any of the pods."""
    useful = useful_bins(problem, demand, counts)
    if not useful:
        return NO_ROOM
    open_to: dict[int, list[int]] = {}
    for k, count in enumerate(counts):
        if count and problem.compatible_bins[k]:
            open_to.setdefault(problem.compatible_bins[k], []).append(k)
    groups = sorted(open_to.items())
    # As text, since testing the bits of a long integer one by one copies it every time.
    digits = [f"{mask:b}"[::-1] for mask, _ in groups]
    looks = len(useful) * sum([len(some) for _, some in groups]) <= _MOST_LOOKS
    listed: dict[tuple[int, ...], tuple[int, ...]] = {}
    found: list[tuple[tuple[int, ...], FreeCapacity]] = []
    for index, room in useful:
        who = tuple([g for g, text in enumerate(digits) if text[index : index + 1] == "1"])
        if who not in listed:
            listed[who] = tuple(sorted([k for g in who for k in groups[g][1]]))
        classes = listed[who]
        amounts = tuple([max(a - a % s, 0) for a, s in zip(room, demand.steps, strict=True)])
        most = tuple([_fitting(demand, k, counts[k], amounts) for k in classes]) if looks else ()
        if any(most) or not looks:
            found.append((who, FreeCapacity(amounts=amounts, classes=classes, most=most)))
    return FreeCapacities(parts=_parts(found, [some for _, some in groups]))


def beyond_rooms(
    values: Sequence[int],
    counts: Sequence[int],
    rooms: FreeCapacities,
    room_worth: RoomWorth,
) -> int:
    """Return the value of the pods that free room cannot hold.

    Args:
        values: Worth of one pod per class.
        counts: Pods per class.
        rooms: The free room.
        room_worth: The most a room's amounts are worth to these classes, None when not known.
    """
    inside = rooms.classes
    total = sum([n * values[k] for k, n in enumerate(counts) if n and k not in inside])
    for classes, free in rooms.parts:
        total += _beyond(sum([counts[k] * values[k] for k in classes]), values, free, room_worth)
    return total


def _beyond(
    worth: int, values: Sequence[int], free: Sequence[FreeCapacity], room_worth: RoomWorth
) -> int:
    """Return some pods' worth, less that of the room they could have; not below 0."""
    for room in free:
        some = [k for k in room.classes if values[k]]
        known = room_worth(room, some)
        if room.most:
            pods = sum([values[k] * n for k, n in zip(room.classes, room.most, strict=True)])
            known = pods if known is None else min(pods, known)
        if known is None or worth <= known:
            return 0
        worth -= known
    return worth


def _fitting(demand: Demand, k: int, count: int, room: Sequence[int]) -> int:
    most = count
    for place, amount in demand.amounts(k):
        most = min(most, room[place] // amount)
    return most


def _parts(
    found: Sequence[tuple[tuple[int, ...], FreeCapacity]], groups: Sequence[Sequence[int]]
) -> tuple[tuple[tuple[int, ...], tuple[FreeCapacity, ...]], ...]:
    """Return rooms by the groups of classes that share them, directly or by others."""
    home = list(range(len(groups)))
    for who in sorted({who for who, _ in found}):
        together = {home[g] for g in who}
        home = [min(together) if value in together else value for value in home]
    parts: dict[int, list[FreeCapacity]] = {}
    for who, room in found:
        parts.setdefault(home[who[0]], []).append(room)
    return tuple(
        (
            tuple(sorted([k for g, some in enumerate(groups) if home[g] == part for k in some])),
            tuple(parts[part]),
        )
        for part in sorted(parts)
    )
