"""Rounding cuts: instances are bought whole, which matters where a single one is expensive.

Some pods fit only a few bin types (eight GPUs of one model, for example). However they are packed,
a whole number of nodes of these bin types is bought. To the bounds that is one more class: as many
imagined pods, each requesting one unit of a resource of which only these bin types have one each.
Every plan for the real pods can hold them, so a bound that counts them is valid.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.packing.bin_types import BinType
from shared.packing.demand import Demand

_MOST_SETS: Final = 8
_LEAST_GAIN: Final = 0.001  # of the cost


def with_rounding_cuts(
    demand: Demand,
    counts: Sequence[int],
    bin_types: Sequence[BinType],
    fits: Mapping[int, int],
    mix: Sequence[tuple[int, float]],
) -> tuple[Demand, list[int], list[BinType], dict[int, int]]:
    """Add a class of imagined pods per set of bin types; return demand, counts, bin types, fits.

    A set is of bin types that are bought in fractions. The imagined classes are the last ones. The
    classes in `fits` may be placed nowhere else.

    Args:
        demand: The classes.
        counts: Pods per class.
        bin_types: What can be bought.
        fits: Per class with pods and no free capacity, the bin types it fits, as a mask.
        mix: (bin type, how many of it) that a linear program buys, in fractions.
    """
    parts = dict(mix)
    total = sum([bin_types[t].price * many for t, many in mix])
    only: dict[int, list[int]] = {}
    for k, mask in fits.items():
        only.setdefault(mask, []).append(k)
    found = []
    for mask in sorted(only):
        some = [t for t in range(len(bin_types)) if mask >> t & 1]
        inside = [k for value, many in only.items() if not value & ~mask for k in many]
        whole = _nodes(demand, counts, inside, [bin_types[t] for t in some]) if some else 0
        missing = whole - sum([parts.get(t, 0.0) for t in some])
        if missing > 0 and missing * min([bin_types[t].price for t in some]) > _LEAST_GAIN * total:
            found.append((-missing * min([bin_types[t].price for t in some]), mask, whole))
    found.sort()
    names, signature = list(demand.names), list(demand.signature)
    extras, amounts = list(demand.extras), list(counts)
    allocatable = [list(bin_type.allocatable) for bin_type in bin_types]
    masks = dict(fits)
    for number, (_, mask, whole) in enumerate(found[:_MOST_SETS]):
        for t, of_bin_type in enumerate(allocatable):
            of_bin_type.append(mask >> t & 1)
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
    with_nodes = [
        bin_type._replace(allocatable=tuple(of_bin_type))
        for bin_type, of_bin_type in zip(bin_types, allocatable, strict=True)
    ]
    return larger, amounts, with_nodes, masks


def _nodes(
    demand: Demand, counts: Sequence[int], classes: Sequence[int], bin_types: Sequence[BinType]
) -> int:
    """Return how many nodes of some bin types the classes need at least.

    By each resource: the total divided by the largest allocatable. Pods of which no two fit on one
    node are counted one by one.
    """
    total: list[int] = [0] * len(demand.names)
    large = [0] * len(demand.names)
    tops: list[int] = [
        max(amounts)
        for amounts in zip(*[bin_type.allocatable for bin_type in bin_types], strict=True)
    ]
    for k in classes:
        for place, amount in demand.amounts(k):
            total[place] += amount * counts[k]
            if amount * 2 > tops[place]:
                large[place] += counts[k]
    by_total = [-(-amount // top) for amount, top in zip(total, tops, strict=True) if top]
    return max([*by_total, *large])
