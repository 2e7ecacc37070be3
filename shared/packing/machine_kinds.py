"""Shapes and classes as plain numbers: what can be bought, at which price, for which classes.

Shapes with the same room for the same classes become one kind. Kinds that another one replaces at
no higher price are left out: of several hundred instance types less than a hundred remain.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import ge
from typing import NamedTuple

from shared.model.ec2.instance_types import CapacityType
from shared.packing.demand import Demand
from shared.packing.problem import PackingProblem, PackingSettings
from shared.packing.usable_capacity import usable_amounts


class MachineKind(NamedTuple):
    """Shapes with the same room, of the same provisioner, for the same classes.

    Attributes:
        room: Amounts in the order of `Demand.names`.
        signatures: Bit mask over the signatures that may run on it.
        shapes: Their indexes, cheapest first.
        price: Micro-dollars per hour of the cheapest pool.
        planning_price: What plans are compared by: mean of the cheapest pools, weighted, and the
            node fee.
    """

    provisioner: str
    room: tuple[int, ...]
    signatures: int
    shapes: tuple[int, ...]
    price: int
    planning_price: int


def allowed_shapes(
    problem: PackingProblem, demand: Demand, rooms: Sequence[tuple[int, ...]]
) -> list[int]:
    """Return the shapes within the cap on node size, and the smallest that larger pods need.

    Args:
        problem: Whose shapes they are.
        demand: Its classes.
        rooms: Amounts by shape (`amounts_of`).
    """
    cap, shapes = problem.settings.max_node_vcpus, problem.shapes
    within = [i for i, shape in enumerate(shapes) if cap == 0 or shape.vcpus <= cap]
    if len(within) == len(shapes):
        return within
    within.sort(key=lambda i: (-shapes[i].vcpus, i))
    allowed = set(within)
    for index, pod_class in enumerate(problem.classes):
        if not pod_class.count:
            continue
        mask, needs = problem.compatible[index], demand.amounts(index)
        if any(mask >> i & 1 and _holds(rooms[i], needs) for i in within):
            continue
        holders = [i for i, room in enumerate(rooms) if mask >> i & 1 and _holds(room, needs)]
        least = min((shapes[i].vcpus for i in holders), default=0)
        allowed.update(i for i in holders if shapes[i].vcpus == least)
    return sorted(allowed)


def find_kinds(
    problem: PackingProblem,
    demand: Demand,
    shapes: Iterable[int],
    rooms: Sequence[tuple[int, ...]],
    settings: PackingSettings,
    *,
    whole: bool = False,
) -> list[MachineKind]:
    """Return the kinds of some shapes that some class may run on, cheapest first.

    Args:
        problem: Whose shapes they are.
        demand: Its classes.
        shapes: Indexes.
        rooms: Amounts by shape (`amounts_of`).
        settings: How prices are compared.
        whole: Whether cpu, memory and pods are cut to what the pods can use, as other resources
            always are: fewer kinds, and the room left over is no longer told.
    """
    grouped: dict[tuple[str, int, tuple[int, ...]], list[int]] = {}
    open_to = _open_to(demand.masks, len(problem.shapes))
    rooms = usable_amounts(problem, demand, rooms, open_to, whole=whole)
    for index in shapes:
        shape, mask = problem.shapes[index], open_to[index]
        if not mask:
            continue
        room = rooms[index]
        # A machine with nothing of a basic resource is a mistake of the catalogue.
        if all(room[:3]):
            key = (shape.provisioner, mask, room)
            grouped.setdefault(key, []).append(index)
    rough = [_rough_kind(problem, key, many, settings) for key, many in grouped.items()]
    rough.sort(key=lambda kind: (kind.price, kind.shapes[0]))
    if settings.diversification_k_on_demand > 1 or settings.diversification_k_spot > 1:
        rough = _diversified(problem, rough, settings)
    return rough


def _open_to(masks: Sequence[int], shapes: int) -> list[int]:
    """Return per shape the signatures that may run on it, as a mask."""
    found = [0] * shapes
    for signature, many in enumerate(masks):
        bit = 1 << signature
        # As text, since testing the bits of a long integer one by one copies it every time.
        text = f"{many:b}"[: -shapes - 1 : -1]
        index = text.find("1")
        while index >= 0:
            found[index] |= bit
            index = text.find("1", index + 1)
    return found


def _holds(room: Sequence[int], needs: Iterable[tuple[int, int]]) -> bool:
    return all(amount <= room[place] for place, amount in needs)


def _rough_kind(
    problem: PackingProblem,
    key: tuple[str, int, tuple[int, ...]],
    shapes: list[int],
    settings: PackingSettings,
) -> MachineKind:
    def weighted(index: int) -> int:
        shape = problem.shapes[index]
        weight = settings.type_weights.get(shape.instance_type, 100)
        return shape.pools[0].price_micros_per_hour * weight // 100

    shapes.sort(key=lambda index: (weighted(index), index))
    price = min(problem.shapes[i].pools[0].price_micros_per_hour for i in shapes)
    return MachineKind(
        provisioner=key[0],
        room=key[2],
        signatures=key[1],
        shapes=tuple(shapes),
        price=price,
        planning_price=weighted(shapes[0]) + settings.node_fee_micros_per_hour,
    )


def _diversified(
    problem: PackingProblem, kinds: list[MachineKind], settings: PackingSettings
) -> list[MachineKind]:
    """Return the kinds, compared by the mean price of the k cheapest pools that could replace them.

    A missing pool counts as one at the price ceiling, so that a shape without alternatives looks
    as expensive as it is.
    """
    pools = [_pools_of(problem, kind, settings) for kind in kinds]
    likes: dict[tuple[str, int], list[int]] = {}
    percent = 100 + settings.option_price_ceiling_percent
    planned = []
    for kind in kinds:
        key = (kind.provisioner, kind.signatures)
        if key not in likes:
            likes[key] = [i for i, entry in enumerate(kinds) if _serves(entry, kind)]
        cpu, memory = kind.room[:2]
        of_type: dict[CapacityType, list[int]] = {}
        wanted = 0
        first = None
        for other in likes[key]:
            room = kinds[other].room
            if cpu > room[0] or memory > room[1] or not all(map(ge, room, kind.room)):
                continue
            if (
                first is not None
                and kinds[other].price * 100 > first[0] * percent
                and not settings.type_weights
            ):
                # All that follow are counted as if they cost the ceiling anyhow.
                break
            for capacity_type, price in pools[other]:
                of_type.setdefault(capacity_type, []).append(price)
                if first is None or price < first[0]:
                    first = (price, capacity_type)
            spot = first is not None and first[1] == CapacityType.SPOT
            wanted = (
                settings.diversification_k_spot if spot else settings.diversification_k_on_demand
            )
            if first is not None and len(of_type.get(first[1], ())) >= wanted:
                break
        assert first is not None
        mean = _mean_price(sorted(of_type[first[1]])[:wanted], wanted, settings)
        planned.append(kind._replace(planning_price=mean + settings.node_fee_micros_per_hour))
    return planned


def _pools_of(
    problem: PackingProblem, kind: MachineKind, settings: PackingSettings
) -> list[tuple[CapacityType, int]]:
    found: list[tuple[CapacityType, int]] = []
    for index in kind.shapes:
        shape = problem.shapes[index]
        weight = settings.type_weights.get(shape.instance_type, 100)
        found.extend(
            (pool.capacity_type, pool.price_micros_per_hour * weight // 100) for pool in shape.pools
        )
    return found


def _mean_price(cheapest: list[int], wanted: int, settings: PackingSettings) -> int:
    ceiling = cheapest[0] * (100 + settings.option_price_ceiling_percent) // 100
    prices = [min(price, ceiling) for price in cheapest]
    prices.extend([ceiling] * (wanted - len(prices)))
    return sum(prices) // wanted


def _serves(other_kind: MachineKind, other: MachineKind) -> bool:
    """Return whether a kind is of the other's provisioner and open to all it is open to."""
    return (
        other_kind.provisioner == other.provisioner
        and not other.signatures & ~other_kind.signatures
    )


def front(kinds: Sequence[MachineKind], limits: Mapping[str, object]) -> list[MachineKind]:
    """Return the kinds that are worth planning with, by planning price.

    A kind is left out when another has as much of everything, is open to the same classes, is no
    more expensive and is under no limit that does not also apply to the first.
    """
    kept: list[MachineKind] = []
    order = sorted(kinds, key=lambda kind: (kind.planning_price, kind.price, kind.shapes[0]))
    homes: dict[tuple[str, int], list[MachineKind]] = {
        (kind.provisioner, kind.signatures): [] for kind in order
    }
    above: dict[tuple[str, int], list[list[MachineKind]]] = {}
    for kind in order:
        home = (kind.provisioner, kind.signatures)
        if home not in above:
            above[home] = [
                some
                for (provisioner, signatures), some in homes.items()
                if not kind.signatures & ~signatures
                and (provisioner == kind.provisioner or provisioner not in limits)
            ]
        if not any(_replaced(kind, some) for some in above[home]):
            kept.append(kind)
            homes[home].append(kind)
    return kept


def _replaced(kind: MachineKind, some: Sequence[MachineKind]) -> bool:
    """Return whether one of some kinds has as much of everything and is no more expensive."""
    asked, price = kind.room, kind.price
    cpu, memory = asked[:2]
    for entry in reversed(some):
        room = entry.room
        if (
            cpu <= room[0]
            and memory <= room[1]
            and entry.price <= price
            and all(map(ge, room, asked))
        ):
            return True
    return False
