"""What each planned node may become: every pool that could replace it, in one order of price.

Nodes of the same kind share one list, so that one CreateFleet call can buy all of them: the list
holds what has room for the largest amounts any of them needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.model.ec2.instance_types import CapacityType
from shared.model.resources import Resources
from shared.packing.machine_kinds import MachineKind
from shared.packing.problem import PackingProblem, Shape

Option = tuple[int, int]


class Ways(NamedTuple):
    """Options and fallback options of a launch group, and the capacity limits must have for it."""

    options: tuple[Option, ...]
    fallback: tuple[Option, ...]
    largest: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Everything that can be bought.

    Attributes:
        by_type: By capacity type, each kind that has it with the price and option of its cheapest
            pool, cheapest first.
    """

    problem: PackingProblem
    by_type: tuple[tuple[CapacityType, tuple[tuple[int, Option, MachineKind], ...]], ...]
    _pools: dict[tuple[str, tuple[int, ...]], list[tuple[int, Option]]] = field(
        default_factory=dict
    )

    def pools(self, capacity_type: CapacityType, kind: MachineKind) -> list[tuple[int, Option]]:
        """Return (price, option) of all pools of a kind, cheapest first.

        Only the few kinds that can replace a planned node need this, so it is computed lazily.
        """
        key = (capacity_type.value, kind.shapes)
        known = self._pools.get(key)
        if known is None:
            known = sorted(
                (pool.price_micros_per_hour, (index, number))
                for index in kind.shapes
                for number, pool in enumerate(self.problem.shapes[index].pools)
                if pool.capacity_type is capacity_type
            )
            self._pools[key] = known
        return known


def list_offers(problem: PackingProblem, kinds: Sequence[MachineKind]) -> Offers:
    """Return every way to buy the kinds' shapes. Pass all kinds, not only the best."""
    found: dict[CapacityType, list[tuple[int, Option, MachineKind]]] = {}
    for capacity_type in CapacityType:
        some = []
        for kind in kinds:
            firsts = [
                first
                for index in kind.shapes
                if (first := _cheapest_pool(problem.shapes[index], index, capacity_type))
            ]
            if firsts:
                some.append((*min(firsts), kind))
        if some:
            some.sort(key=lambda entry: entry[:2])
            found[capacity_type] = some
    return Offers(problem=problem, by_type=tuple((t, tuple(found[t])) for t in sorted(found)))


def _cheapest_pool(
    shape: Shape, index: int, capacity_type: CapacityType
) -> tuple[int, Option] | None:
    for number, pool in enumerate(shape.pools):
        if pool.capacity_type is capacity_type:
            return pool.price_micros_per_hour, (index, number)
    return None


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
    for number in range(len(offers.by_type)):
        pools = _standing_in(offers, number, needs, signatures, provisioner, room_left)
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
    offers: Offers,
    number: int,
    needs: Sequence[int],
    signatures: int,
    provisioner: str,
    room_left: Resources | None,
) -> list[tuple[int, Option]]:
    cpu, memory, pods = needs[:3]
    rest = [(place, amount) for place, amount in enumerate(needs) if place > 2 and amount]
    problem = offers.problem
    percent = 100 + problem.settings.option_price_ceiling_percent
    capacity_type, some = offers.by_type[number]
    found: list[tuple[int, Option]] = []
    top = 0
    for price, _, kind in some:
        if top and price * 100 > top:
            break
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
        pools = offers.pools(capacity_type, kind)
        if room_left is not None:
            good = {i for i in kind.shapes if _within(problem, i, room_left)}
            pools = [pool for pool in pools if pool[1][0] in good]
        if pools:
            top = top or pools[0][0] * percent
            found.extend(pool for pool in pools if pool[0] * 100 <= top)
    found.sort()
    return [entry for entry in found if entry[0] * 100 <= found[0][0] * percent][
        : problem.settings.max_options
    ]


def _within(problem: PackingProblem, shape: int, room_left: Resources) -> bool:
    capacity = problem.shapes[shape].capacity
    return all(capacity[name] <= max(amount, 0) for name, amount in room_left.items)
