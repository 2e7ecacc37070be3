"""The bound from patterns: what each pod is worth when no machine, however filled, returns more.

A price for resources cannot see that a pod of 64 cores fits only once on a machine of 127. The
programme over all patterns can: each is a kind with a load of whole pods (`pattern_basis`). Its
dual values, one per class, are a bound when no load is worth more than its kind costs, which an
exact search proves kind by kind (`whole_loads`).

Stopped before that, the values are still a bound once they are made smaller: a class is worth less
by as much as the worst of the kinds that it fits could return too much (Source: Farley, "A note on
bounding a class of linear programming problems, including cutting stock problems", Operations
Research 38, 1990, https://doi.org/10.1287/opre.38.5.922, read 2026-11-28; there by the worst of
all kinds). Values come from floating point and count as whole numbers from there on.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Final

from shared.packing.bound.free_capacity import (
    FreeCapacities,
    FreeCapacity,
    RoomWorth,
    beyond_rooms,
)
from shared.packing.bound.least_cost import LeastCost, is_close
from shared.packing.bound.listed_loads import ListedLoads
from shared.packing.bound.pattern_basis import PatternBasis, first_basis
from shared.packing.bound.per_kind import kinds_that_fit
from shared.packing.bound.rounding_cuts import with_whole_nodes
from shared.packing.bound.whole_loads import Machine, Needs
from shared.packing.demand import Demand
from shared.packing.machine_kinds import MachineKind

_SCALE: Final = 1 << 16  # of worths, which are whole numbers
# Loads are sought that are worth so much more than their kind costs: those that change most first.
_EXCESSES: Final = (0.1, 0.03, 0.01, 0.003, 0.001)
# What the proof tries to show of each kind: that no load is worth more than this times its price.
_LADDER: Final = (1.03, 1.01, 1.003, 1.001, 1.0)
_LOAD: Final = 3_000  # microseconds of looking for one load
_LONGER: Final = 500  # the same once one is found
_PROOF: Final = 20_000
_PIVOT: Final = 10.0
_PIVOT_OF_CELL: Final = 0.06
_LEAST_EXCESS: Final = 1e-4  # of listed loads, which are quickly looked through
_TO_LIST: Final = 0.2  # of the steps
_TO_IMPROVE: Final = 0.75  # of the steps; the others are left for the proof


class _Steps:
    """Steps left, each about a microsecond."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spend(self, steps: float) -> None:
        self._left -= int(steps)

    def ended(self) -> bool:
        return self._left <= 0

    def more(self, steps: int) -> "_Steps":
        """Return what is left and so many more."""
        return _Steps(max(self._left, 0) + steps)


def pattern_bound(
    demand: Demand,
    counts: Sequence[int],
    kinds: Sequence[MachineKind],
    mix: Sequence[tuple[int, float]],
    rooms: FreeCapacities,
    most_steps: int,
) -> LeastCost:
    """Return what placing the pods costs at least by true prices.

    Args:
        demand: The classes.
        counts: Pods per class, all of them placed; what fits no kind is on the bins.
        kinds: What can be bought; replaceable kinds may be missing.
        mix: (kind, how many of it) that a programme buys, in parts: see `with_whole_nodes`.
        rooms: Room that need not be bought.
        most_steps: What it may take, in microseconds, about.
    """
    fits = {k: kinds_that_fit(demand, k, kinds) for k, count in enumerate(counts) if count}
    # Pods that may be in free room may need no node of their own.
    inside = {k for room in rooms for k in room.classes}
    alone = {k: mask for k, mask in fits.items() if k not in inside}
    demand, counts, kinds, more = with_whole_nodes(demand, counts, kinds, alone, mix)
    fits |= more
    pods = [(k, counts[k], demand.amounts(k)) for k, mask in sorted(fits.items()) if mask]
    machines = [
        Machine(t, kind, own)
        for t, kind in enumerate(kinds)
        if (own := [entry for entry in pods if fits[entry[0]] >> t & 1])
    ]
    basis = first_basis(counts, _alone(machines))
    listed = ListedLoads(machines, int(most_steps * _TO_LIST))
    others = [machine for machine in machines if machine.kind not in listed.machines]
    steps = _Steps(int(most_steps * _TO_IMPROVE) - listed.steps)
    _improve(others, listed, basis, steps)
    values = _proved(others, listed, basis, steps.more(int(most_steps * (1 - _TO_IMPROVE))))
    for machine in machines if rooms else ():
        machine.reprice(basis.values)
    worth_of_room = _worth_of_room(machines, values, pods)
    total = beyond_rooms(values, counts, rooms, worth_of_room)
    best = sum([n * basis.values[k] for k, n, _ in pods])
    return LeastCost(total // _SCALE, not rooms and is_close(total, best * _SCALE))


def _alone(machines: Sequence[Machine]) -> dict[int, tuple[float, int, int]]:
    """Return per class the price of a pod, kind and pods of a node where it is cheapest alone."""
    found: dict[int, tuple[float, int, int]] = {}
    for machine in machines:
        for k, n in zip(machine.classes, machine.most, strict=True):
            way = (machine.price / n, machine.kind, n)
            found[k] = min(found.get(k, way), way)
    return found


def _improve(
    machines: Sequence[Machine], listed: ListedLoads, basis: PatternBasis, steps: _Steps
) -> None:
    """Bring in loads worth more than their kind costs, while there are any and steps are left."""
    _improve_by_listed(listed, basis, steps)
    for excess in _EXCESSES:
        at = idle = 0
        while idle < len(machines) and not steps.ended():
            machine = machines[at]
            at = (at + 1) % len(machines)
            idle += 1
            load = _load(machine, basis.values, excess, steps)
            if load:
                idle = 0
                _enter(basis, machine.kind, load, machine.price, steps)
                if not at:
                    _improve_by_listed(listed, basis, steps)
        _improve_by_listed(listed, basis, steps)


def _improve_by_listed(listed: ListedLoads, basis: PatternBasis, steps: _Steps) -> None:
    """Bring in listed loads, the best first."""
    while listed.loads and not steps.ended():
        ratio, best = listed.best(basis.values)
        steps.spend(listed.steps_of_looking)
        if ratio <= 1 + _LEAST_EXCESS:
            return
        load = Counter(listed.loads[best])
        _enter(basis, listed.kinds[best], load, listed.prices[best], steps)


def _enter(
    basis: PatternBasis, kind: int, load: Mapping[int, int], price: int, steps: _Steps
) -> None:
    worth = sum([n * basis.values[k] for k, n in load.items()])
    basis.enter(kind, load, price - worth)
    pivots = 1 + basis.drop_surplus(price)
    steps.spend(pivots * (_PIVOT + _PIVOT_OF_CELL * len(basis.rows) ** 2))


def _load(
    machine: Machine, values: Sequence[float], excess: float, steps: _Steps
) -> dict[int, int]:
    """Return a load worth so much more than the machine costs, empty where none was found."""
    above = machine.price * (1 + excess)
    if machine.worth_in_parts(values) <= above:
        return {}
    machine.reprice(values)
    steps.spend(machine.steps_of_pricing)
    if machine.worth_in_parts(values) <= above:
        return {}
    most = _LOAD if excess > _EXCESSES[-1] else _PROOF
    found = machine.best_load(_whole(values), int(above * _SCALE), most, _LONGER)
    steps.spend(found.steps)
    return found.contents


def _whole(values: Sequence[float]) -> list[int]:
    return [max(int(value * _SCALE), 0) for value in values]


def _proved(
    machines: Sequence[Machine], listed: ListedLoads, basis: PatternBasis, steps: _Steps
) -> list[int]:
    """Return whole values at which no load is worth more than its kind costs."""
    values = _whole(basis.values)
    proved = list(values)
    for load, each in zip(listed.loads, listed.prices, strict=True):
        price, worth = each * _SCALE, sum(map(values.__getitem__, load))
        if worth > price:
            for k in load:
                proved[k] = min(proved[k], values[k] * price // worth)
    for machine in machines:
        machine.reprice(basis.values)
        steps.spend(machine.steps_of_pricing)
        price = machine.price * _SCALE
        most = _most_worth(machine, values, price, steps)
        if most > price:
            for k in machine.classes:
                proved[k] = min(proved[k], values[k] * price // most)
    return proved


def _most_worth(machine: Machine, values: Sequence[int], price: int, steps: _Steps) -> int:
    """Return what no load of a machine is worth more than, as close as the steps allow."""
    most = 0
    for times in _LADDER:
        above = int(price * times)
        if 0 < most <= above:
            continue
        found = machine.best_load(values, above, 0 if steps.ended() else _PROOF)
        steps.spend(found.steps)
        most = min(most or found.most_worth, found.most_worth)
        if found.contents or not found.ended:
            break
    return most


def _worth_of_room(
    machines: Sequence[Machine], values: Sequence[int], pods: Sequence[tuple[int, int, Needs]]
) -> RoomWorth:
    """Return a function: the most that room is worth to some classes.

    Any weights of resources do: no filling weighs more than the room, nor is any pod worth more
    per weight than the best one. Those by which a machine is priced are tried.
    """
    needs = {k: amounts for k, _, amounts in pods}
    ways = [dict(machine.weights()) for machine in machines]
    ratios: dict[tuple[int, ...], list[tuple[dict[int, int], Fraction]]] = {}

    def per_weight(some: tuple[int, ...]) -> list[tuple[dict[int, int], Fraction]]:
        found = []
        for way in ways:
            each = [sum([way.get(place, 0) * a for place, a in needs[k]]) for k in some]
            if all(each):
                each_worth = [Fraction(values[k], w) for k, w in zip(some, each, strict=True)]
                best = max(each_worth, default=Fraction(0))
                found.append((way, best))
        return found

    def room_worth(room: FreeCapacity, some: Sequence[int]) -> int | None:
        key = tuple(some)
        if key not in ratios:
            ratios[key] = per_weight(key)
        worths = [
            best * sum([w * room.amounts[place] for place, w in way.items() if place < width])
            for way, best in ratios[key]
            for width in [len(room.amounts)]
        ]
        return ceil(min(worths)) if worths else None

    return room_worth
