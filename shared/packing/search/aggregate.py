"""The coarse problem: classes that are alike but for their zone or slot, counted as one."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import Demand
from shared.packing.machine_kinds import MachineKind, front
from shared.packing.priced_problem import PricedProblem, make_ground
from shared.packing.symmetry import alike_signatures, pooled_room, pooled_slots

_FEWER: Final = 0.75


class AggregatedProblem(NamedTuple):
    """The ground of the coarse problem.

    Attributes:
        counts: Pods per coarse class.
        members: Per coarse class, the classes it aggregates.
    """

    priced: PricedProblem
    counts: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]


def coarsen(
    priced: PricedProblem, counts: Sequence[int], limits: Mapping[str, object]
) -> AggregatedProblem | None:
    """Return the coarse problem, or None when there are no classes to count as one."""
    demand = priced.demand
    present = [k for k, count in enumerate(counts) if count]
    home = pooled_slots(demand, counts, priced.kinds)
    signatures = sorted({demand.signature[k] for k in present})
    alike = alike_signatures(signatures, priced.kinds, priced.prices, exactly=False)
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
    kinds = front(_coarse_kinds(priced, home, kept, alike, firsts), limits)
    prices = [kind.planning_price for kind in kinds]
    worth = find_prices(smaller, pooled, kinds, prices)
    return AggregatedProblem(
        priced=make_ground(smaller, kinds, worth, prices), counts=pooled, members=members
    )


def _coarse_kinds(
    priced: PricedProblem,
    home: Sequence[int],
    kept: Sequence[int],
    alike: Mapping[int, int],
    firsts: Mapping[int, int],
) -> list[MachineKind]:
    """Return the kinds with pooled rooms, open to all signatures alike, at the least price."""
    found: dict[tuple[str, int, tuple[int, ...]], MachineKind] = {}
    for kind, price in zip(priced.kinds, priced.prices, strict=True):
        mask = 0
        for signature, first in alike.items():
            if kind.signatures >> signature & 1:
                mask |= 1 << firsts[first]
        pooled = pooled_room(kind.room, home)
        room = tuple([pooled[place] for place in kept])
        key = (kind.provisioner, mask, room)
        if key not in found or price < found[key].planning_price:
            found[key] = kind._replace(signatures=mask, room=room, planning_price=price)
    return list(found.values())
