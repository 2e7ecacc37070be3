"""The aggregated problem: classes that differ only in zone or pseudo resource count as one."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from shared.packing.bin_types import BinType, undominated
from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import Demand
from shared.packing.pooling import alike_signatures, pooled_amounts, pooled_pseudo_resources
from shared.packing.priced_problem import PricedProblem, price_problem

_FEWER: Final = 0.75


class AggregatedProblem(NamedTuple):
    """The aggregated problem.

    Attributes:
        counts: Pods per coarse class.
        members: Per coarse class, the classes it aggregates.
    """

    priced: PricedProblem
    counts: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]


def aggregate(
    priced: PricedProblem, counts: Sequence[int], limits: Mapping[str, object]
) -> AggregatedProblem | None:
    """Return the aggregated problem, or None when too few classes can be counted as one."""
    demand = priced.demand
    present = [k for k, count in enumerate(counts) if count]
    home = pooled_pseudo_resources(demand, counts, priced.bin_types)
    signatures = sorted({demand.signature[k] for k in present})
    alike = alike_signatures(signatures, priced.bin_types, priced.prices, exactly=False)
    kept = [place for place, where in enumerate(home) if where == place]
    if len(kept) == len(home) and len(set(alike.values())) == len(signatures):
        return None
    number = {place: position for position, place in enumerate(kept)}
    firsts = {value: position for position, value in enumerate(sorted(set(alike.values())))}
    found: dict[tuple[int, ...], list[int]] = {}
    for k in present:
        amounts = [0] * len(kept)
        for place, amount in demand.amounts(k):
            if home[place] >= 0:
                amounts[number[home[place]]] += amount
        found.setdefault((firsts[alike[demand.signature[k]]], *amounts), []).append(k)
    if len(found) > _FEWER * len(present):
        return None
    smaller = Demand(
        names=tuple(demand.names[place] for place in kept),
        cpu=tuple(key[1] for key in found),
        memory=tuple(key[2] for key in found),
        pods=tuple(key[3] for key in found),
        extras=tuple(
            tuple((place, amount) for place, amount in enumerate(key[4:]) if amount)
            for key in found
        ),
        signature=tuple(key[0] for key in found),
        masks=(0,) * len(firsts),
        steps=(1,) * len(kept),
    )
    members = tuple(tuple(some) for some in found.values())
    pooled = tuple(sum(counts[k] for k in some) for some in members)
    bin_types = undominated(_coarse_bin_types(priced, home, kept, alike, firsts), limits)
    prices = [bin_type.comparison_price for bin_type in bin_types]
    dual_prices = find_prices(smaller, pooled, bin_types, prices)
    return AggregatedProblem(
        priced=price_problem(smaller, bin_types, dual_prices, prices),
        counts=pooled,
        members=members,
    )


def _coarse_bin_types(
    priced: PricedProblem,
    home: Sequence[int],
    kept: Sequence[int],
    alike: Mapping[int, int],
    firsts: Mapping[int, int],
) -> list[BinType]:
    """Return the bin types with pooled resources and signatures, each at its lowest price."""
    found: dict[tuple[str, int, tuple[int, ...]], BinType] = {}
    for bin_type, price in zip(priced.bin_types, priced.prices, strict=True):
        mask = 0
        for signature, first in alike.items():
            if bin_type.signatures >> signature & 1:
                mask |= 1 << firsts[first]
        pooled = pooled_amounts(bin_type.allocatable, home)
        allocatable = tuple([pooled[place] for place in kept])
        key = (bin_type.provisioner, mask, allocatable)
        if key not in found or price < found[key].comparison_price:
            found[key] = bin_type._replace(
                signatures=mask, allocatable=allocatable, comparison_price=price
            )
    return list(found.values())
