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
        part: All classes of the rooms that share some with it, directly or by others.
        most: Pods of each of `classes` that fit alone; empty where that is too many to look at.
    """

    amounts: tuple[int, ...]
    classes: tuple[int, ...]
    part: tuple[int, ...]
    most: tuple[int, ...] = ()


FreeCapacities = tuple[FreeCapacity, ...]
NO_ROOM: Final[FreeCapacities] = ()
RoomWorth = Callable[[FreeCapacity, Sequence[int]], int | None]


def too_many(rooms: FreeCapacities, counts: Sequence[int]) -> list[int]:
    """Return pods per class for which there is no room, had each class all of it alone."""
    left = list(counts)
    for room in rooms:
        # Where nothing is known of a room, all pods of its part may have room.
        most = dict(zip(room.classes, room.most, strict=True)) if room.most else {}
        for k in room.classes if room.most else room.part:
            left[k] = max(left[k] - most.get(k, left[k]), 0)
    return left


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
            found.append((who, FreeCapacity(amounts, classes, classes, most)))
    return _in_parts(found, [some for _, some in groups])


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
    parts: dict[tuple[int, ...], list[FreeCapacity]] = {}
    for room in rooms:
        parts.setdefault(room.part, []).append(room)
    inside = {k for part in parts for k in part}
    total = sum([n * values[k] for k, n in enumerate(counts) if n and k not in inside])
    for part, free in parts.items():
        total += _beyond(sum([counts[k] * values[k] for k in part]), values, free, room_worth)
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


def _in_parts(
    found: Sequence[tuple[tuple[int, ...], FreeCapacity]], groups: Sequence[Sequence[int]]
) -> FreeCapacities:
    """Return rooms with their parts, by the groups of classes that may go to them."""
    home = list(range(len(groups)))
    for who in sorted({who for who, _ in found}):
        together = {home[g] for g in who}
        home = [min(together) if value in together else value for value in home]
    parts: dict[int, list[int]] = {}
    for g, some in enumerate(groups):
        parts.setdefault(home[g], []).extend(some)
    whole = {part: tuple(sorted(classes)) for part, classes in parts.items()}
    return tuple(room._replace(part=whole[home[who[0]]]) for who, room in found)
