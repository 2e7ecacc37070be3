"""What is so alike that it can be planned as one: zones of equal machines, slots of equal use.

A class pinned to one of three zones is planned like its twins in the others, and a slot per
deployment like one resource of which a node has as many as there are deployments. Either makes
the problem easier, never harder: a lower bound for the pooled problem is one for the whole.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.packing.demand import Demand
from shared.packing.machine_kinds import MachineKind

SLOT: Final = "slot/"
_SAME_USE: Final = 0.5
_SAME_PRICE: Final = 1.1
_SAME_MACHINES: Final = 0.8


def pooled_slots(
    demand: Demand, counts: Sequence[int], kinds: Sequence[MachineKind]
) -> tuple[int, ...]:
    """Return, per resource position, the position it is counted at: slots of equal use are one.

    Slots are alike when the nodes they need at least (pods by what one node has) are within a
    factor of two: one that needs far more nodes than the others keeps a resource of its own.
    Slots that leave more than half of their places empty even on the fewest nodes there can be
    are counted nowhere, -1: they are seen to when pods are seated.
    """
    home = list(range(len(demand.names)))
    slots = [place for place, name in enumerate(demand.names) if name.startswith(SLOT)]
    if len(slots) < 2:
        return tuple(home)
    wanted = dict.fromkeys(slots, 0)
    for k, some in enumerate(demand.extras):
        for place, amount in some:
            if place + 3 in wanted:
                wanted[place + 3] += amount * counts[k]
    nodes = {
        place: wanted[place] / max(max((kind.room[place] for kind in kinds), default=1), 1)
        for place in slots
    }
    most = max(nodes.values())
    first = -1
    for place in sorted(slots, key=lambda place: (-nodes[place], place)):
        if first < 0 or nodes[place] < nodes[first] * _SAME_USE:
            first = place if nodes[place] >= most * _SAME_USE else -1
        home[place] = first
    return tuple(home)


def pooled_room(room: Sequence[int], home: Sequence[int]) -> tuple[int, ...]:
    """Return amounts by resource with those of pooled slots added up at their common position."""
    total = [0] * len(room)
    for amount, where in zip(room, home, strict=True):
        if where >= 0:
            total[where] += amount
    return tuple(total)


def alike_signatures(
    signatures: Sequence[int], kinds: Sequence[MachineKind], prices: Sequence[int], *, exactly: bool
) -> Mapping[int, int]:
    """Return, per signature, the first one that may have the same machines at its prices.

    Unless `exactly`, most of the machines at about its prices are enough.
    """
    offers: dict[int, dict[tuple[str, tuple[int, ...]], int]] = {
        signature: {} for signature in signatures
    }
    for kind, price in zip(kinds, prices, strict=True):
        key = (kind.provisioner, kind.room)
        for value, some in offers.items():
            if kind.signatures >> value & 1:
                some[key] = min(some.get(key, price), price)
    found: dict[int, int] = {}
    firsts: list[int] = []
    for signature in signatures:
        like = (
            other
            for other in firsts
            if offers[signature] == offers[other]
            or (not exactly and _alike(offers[signature], offers[other]))
        )
        found[signature] = next(like, signature)
        if found[signature] == signature:
            firsts.append(signature)
    return found


def _alike(
    entry: Mapping[tuple[str, tuple[int, ...]], int],
    other: Mapping[tuple[str, tuple[int, ...]], int],
) -> bool:
    both = [key for key in entry if key in other]
    same = sum(
        1
        for key in both
        if max(entry[key], other[key]) <= min(entry[key], other[key]) * _SAME_PRICE
    )
    return same >= _SAME_MACHINES * max(len(entry), len(other), 1)
