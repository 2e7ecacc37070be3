"""Pooling: zones with the same node types, and pseudo resources with the same use, become one.

A class pinned to one of three zones is planned like its equals in the others, and a pseudo resource
per deployment like one resource of which a node has as many as there are deployments. Either
relaxes the problem: a lower bound for the pooled problem is one for the whole.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.packing.bin_types import BinType
from shared.packing.demand import Demand

PSEUDO_RESOURCE: Final = "slot/"
_SAME_USE: Final = 0.5
_SAME_PRICE: Final = 1.1
_SAME_MACHINES: Final = 0.8


def pooled_pseudo_resources(
    demand: Demand, counts: Sequence[int], bin_types: Sequence[BinType]
) -> tuple[int, ...]:
    """Return, per resource position, the position it is counted at; -1 for none.

    Pseudo resources are pooled when the nodes they need at least (requests divided by what one node
    has) are within a factor of two: one that needs far more nodes than the others stays a resource
    of its own. Those of which more than half stays unused even on the fewest possible nodes are not
    counted: they are respected when pods are assigned to nodes (`disaggregate`).
    """
    home = list(range(len(demand.names)))
    pseudo_places = [
        place for place, name in enumerate(demand.names) if name.startswith(PSEUDO_RESOURCE)
    ]
    if len(pseudo_places) < 2:
        return tuple(home)
    wanted = dict.fromkeys(pseudo_places, 0)
    for k, some in enumerate(demand.extras):
        for place, amount in some:
            if place + 3 in wanted:
                wanted[place + 3] += amount * counts[k]
    nodes = {
        place: wanted[place]
        / max(max((bin_type.allocatable[place] for bin_type in bin_types), default=1), 1)
        for place in pseudo_places
    }
    most = max(nodes.values())
    first = -1
    for place in sorted(pseudo_places, key=lambda place: (-nodes[place], place)):
        if first < 0 or nodes[place] < nodes[first] * _SAME_USE:
            first = place if nodes[place] >= most * _SAME_USE else -1
        home[place] = first
    return tuple(home)


def pooled_amounts(amounts: Sequence[int], home: Sequence[int]) -> tuple[int, ...]:
    """Return amounts by resource with pooled ones added up at their common position."""
    total = [0] * len(amounts)
    for amount, where in zip(amounts, home, strict=True):
        if where >= 0:
            total[where] += amount
    return tuple(total)


def alike_signatures(
    signatures: Sequence[int], bin_types: Sequence[BinType], prices: Sequence[int], *, exactly: bool
) -> Mapping[int, int]:
    """Return, per signature, the first one that is open to the same nodes at the same prices.

    Unless `exactly`, most of the nodes at about the same prices are enough.
    """
    offers: dict[int, dict[tuple[str, tuple[int, ...]], int]] = {
        signature: {} for signature in signatures
    }
    for bin_type, price in zip(bin_types, prices, strict=True):
        key = (bin_type.provisioner, bin_type.allocatable)
        for value, some in offers.items():
            if bin_type.signatures >> value & 1:
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
