"""What each planned node may become: every pool that could stand in, in one order of price.

Nodes of the same kind share one list, so that one CreateFleet call can buy all of them: the list
holds what has room for the largest amounts any of them needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.model.instance_types import CapacityType
from shared.model.resources import Resources
from shared.packing.market import Kind
from shared.packing.problem import PackingProblem

Option = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Options and fallback options of a launch group, and the capacity limits must have for it."""

    options: tuple[Option, ...]
    fallback: tuple[Option, ...]
    largest: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The pools of one capacity type of one kind: (price, option), cheapest first."""

    kind: Kind
    pools: tuple[tuple[int, Option], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Everything that can be bought, by capacity type, cheapest first."""

    problem: PackingProblem
    by_type: tuple[tuple[CapacityType, tuple[Offer, ...]], ...]


def list_offers(problem: PackingProblem, kinds: Sequence[Kind]) -> Offers:
    """Return every pool of the kinds' shapes. Pass all kinds, not only the best."""
    found: dict[CapacityType, list[Offer]] = {}
    for kind in kinds:
        pools: dict[CapacityType, list[tuple[int, Option]]] = {}
        for index in kind.shapes:
            for number, pool in enumerate(problem.shapes[index].pools):
                one = (pool.price_micros_per_hour, (index, number))
                pools.setdefault(pool.capacity_type, []).append(one)
        for capacity_type, some in pools.items():
            offer = Offer(kind=kind, pools=tuple(sorted(some)))
            found.setdefault(capacity_type, []).append(offer)
    for many in found.values():
        many.sort(key=lambda offer: offer.pools[0])
    return Offers(problem=problem, by_type=tuple((t, tuple(found[t])) for t in sorted(found)))


def find_ways(
    offers: Offers,
    needs: Sequence[int],
    signatures: int,
    provisioner: str,
    room_left: Resources | None = None,
) -> Ways | None:
    """Return the options for a node that must hold some amounts, or None when there is none.

    Args:
        offers: All that can be bought.
        needs: Amounts by resource.
        signatures: Who must be allowed on it, as a mask.
        provisioner: Whose node it is.
        room_left: What its limits still allow for one node; None when there are none.
    """
    lists = []
    for _, some in offers.by_type:
        pools = _standing_in(offers.problem, some, needs, signatures, provisioner, room_left)
        if pools:
            lists.append(pools)
    if not lists:
        return None
    lists.sort(key=lambda pools: pools[0])
    chosen = [tuple(option for _, option in pools) for pools in lists]
    fallback = chosen[1] if len(chosen) > 1 else ()
    largest = Resources()
    if provisioner in offers.problem.limits:
        for index in sorted({index for index, _ in (*chosen[0], *fallback)}):
            largest = largest.largest(offers.problem.shapes[index].capacity)
    return Ways(options=chosen[0], fallback=fallback, largest=largest)


def _standing_in(
    problem: PackingProblem,
    offers: Sequence[Offer],
    needs: Sequence[int],
    signatures: int,
    provisioner: str,
    room_left: Resources | None,
) -> list[tuple[int, Option]]:
    cpu, memory, pods = needs[:3]
    rest = [(place, amount) for place, amount in enumerate(needs) if place > 2 and amount]
    percent = 100 + problem.settings.option_price_ceiling_percent
    found: list[tuple[int, Option]] = []
    top = 0
    for offer in offers:
        price = offer.pools[0][0]
        if top and price * 100 > top:
            break
        kind = offer.kind
        room = kind.room
        if (
            cpu > room[0]
            or memory > room[1]
            or pods > room[2]
            or signatures & ~kind.signatures
            or kind.provisioner != provisioner
            or any(amount > room[place] for place, amount in rest)
        ):
            continue
        pools = offer.pools
        if room_left is not None:
            pools = tuple(one for one in pools if _within(problem, one[1][0], room_left))
        if pools:
            top = top or pools[0][0] * percent
            found.extend(one for one in pools if one[0] * 100 <= top)
    found.sort()
    return [one for one in found if one[0] * 100 <= found[0][0] * percent][
        : problem.settings.max_options
    ]


def _within(problem: PackingProblem, shape: int, room_left: Resources) -> bool:
    capacity = dict(problem.shapes[shape].capacity.items)
    return all(capacity.get(name, 0) <= max(amount, 0) for name, amount in room_left.items)
