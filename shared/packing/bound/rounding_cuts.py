"""Whole nodes: machines are not bought in parts, which matters where one alone costs a lot.

Some pods fit a few kinds only (eight GPUs of one model, say). However they are packed, some whole
number of these kinds is bought. To the bounds that is one more class: so many imagined pods that
ask for one of a resource of which just these kinds have one each. Every plan for the real pods has
room for them, so a bound that counts them is a bound.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.packing.demand import Demand
from shared.packing.machine_kinds import MachineKind

_MOST_SETS: Final = 8
_LEAST_GAIN: Final = 0.001  # of the cost


def with_whole_nodes(
    demand: Demand,
    counts: Sequence[int],
    kinds: Sequence[MachineKind],
    fits: Mapping[int, int],
    mix: Sequence[tuple[int, float]],
) -> tuple[Demand, list[int], list[MachineKind], dict[int, int]]:
    """Return demand, counts, kinds and fits with a class of imagined pods per set of kinds.

    A set is of kinds that are bought in parts. The imagined classes are the last ones. The classes
    in `fits` may be placed nowhere else.

    Args:
        demand: The classes.
        counts: Pods per class.
        kinds: What can be bought.
        fits: Per class with pods and no free room, the kinds it fits, as a mask.
        mix: (kind, how many of it) that a programme buys, in parts.
    """
    parts = dict(mix)
    total = sum([kinds[t].price * many for t, many in mix])
    only: dict[int, list[int]] = {}
    for k, mask in fits.items():
        only.setdefault(mask, []).append(k)
    found = []
    for mask in sorted(only):
        some = [t for t in range(len(kinds)) if mask >> t & 1]
        inside = [k for value, many in only.items() if not value & ~mask for k in many]
        whole = _nodes(demand, counts, inside, [kinds[t] for t in some]) if some else 0
        missing = whole - sum([parts.get(t, 0.0) for t in some])
        if missing > 0 and missing * min([kinds[t].price for t in some]) > _LEAST_GAIN * total:
            found.append((-missing * min([kinds[t].price for t in some]), mask, whole))
    found.sort()
    names, signature = list(demand.names), list(demand.signature)
    extras, amounts = list(demand.extras), list(counts)
    rooms = [list(kind.room) for kind in kinds]
    masks = dict(fits)
    for number, (_, mask, whole) in enumerate(found[:_MOST_SETS]):
        for t, room in enumerate(rooms):
            room.append(mask >> t & 1)
        masks[len(amounts)] = mask
        extras.append(((len(names) - 3, 1),))
        names.append(f"nodes/{number}")
        signature.append(demand.signature[only[mask][0]])
        amounts.append(whole)
    more = (0,) * (len(amounts) - len(counts))
    larger = demand._replace(
        names=tuple(names),
        cpu=demand.cpu + more,
        memory=demand.memory + more,
        pods=demand.pods + more,
        extras=tuple(extras),
        signature=tuple(signature),
    )
    with_nodes = [kind._replace(room=tuple(room)) for kind, room in zip(kinds, rooms, strict=True)]
    return larger, amounts, with_nodes, masks


def _nodes(
    demand: Demand, counts: Sequence[int], classes: Sequence[int], kinds: Sequence[MachineKind]
) -> int:
    """Return how many of some kinds the classes need at least.

    By each resource: the total over the largest room. Pods of which no two fit one node are
    counted one by one.
    """
    total: list[int] = [0] * len(demand.names)
    large = [0] * len(demand.names)
    tops: list[int] = [max(amounts) for amounts in zip(*[kind.room for kind in kinds], strict=True)]
    for k in classes:
        for place, amount in demand.amounts(k):
            total[place] += amount * counts[k]
            if amount * 2 > tops[place]:
                large[place] += counts[k]
    by_total = [-(-amount // top) for amount, top in zip(total, tops, strict=True) if top]
    return max([*by_total, *large])
