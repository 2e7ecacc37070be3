"""Shapes and classes as plain numbers: what can be bought, at which price, for whom.

Shapes with the same room for the same classes become one kind. Kinds that another one replaces at
no higher price are left out: of several hundred instance types less than a hundred remain.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Final, NamedTuple

from shared.model.instance_types import CapacityType
from shared.model.resources import CPU, MEMORY, PODS
from shared.packing.problem import PackingProblem, PackingSettings, Shape

CORE: Final = (CPU, MEMORY, PODS)


class Demand(NamedTuple):
    """The classes, column by column, indexed like the problem's.

    Attributes:
        names: Resource names: cpu, memory, pods, then the others by name.
        cpu: Millicores of one pod.
        memory: Bytes of one pod.
        pods: Pod places of one pod.
        extras: (position among the other resources, amount) of one pod, amounts above zero.
        signature: Which set of shapes a class may run on.
        masks: Per signature, its bit mask over shapes.
        steps: Per resource, what every pod's amount is a multiple of: room beyond the last whole
            step can never be used.
    """

    names: tuple[str, ...]
    cpu: tuple[int, ...]
    memory: tuple[int, ...]
    pods: tuple[int, ...]
    extras: tuple[tuple[tuple[int, int], ...], ...]
    signature: tuple[int, ...]
    masks: tuple[int, ...]
    steps: tuple[int, ...]

    def amounts(self, index: int) -> list[tuple[int, int]]:
        """Return (resource position, amount) of one pod of a class, zeros left out."""
        core = (self.cpu[index], self.memory[index], self.pods[index])
        found = [(place, amount) for place, amount in enumerate(core) if amount]
        found.extend((place + 3, amount) for place, amount in self.extras[index])
        return found


class Kind(NamedTuple):
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


def read_demand(problem: PackingProblem) -> Demand:
    """Return the classes of a problem, column by column."""
    named = {name for one in problem.classes for name in one.requests}
    names = (*CORE, *sorted(named.difference(CORE)))
    places = {name: place for place, name in enumerate(names)}
    signatures: dict[int, int] = {}
    columns: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    cpu, memory, pods, signature = columns
    extras = []
    for one, mask in zip(problem.classes, problem.compatible, strict=True):
        amounts = dict(one.requests.items)
        cpu.append(max(amounts.pop(CPU, 0), 0))
        memory.append(max(amounts.pop(MEMORY, 0), 0))
        pods.append(max(amounts.pop(PODS, 0), 0))
        extras.append(tuple((places[n] - 3, amounts[n]) for n in sorted(amounts) if amounts[n] > 0))
        signature.append(signatures.setdefault(mask, len(signatures)))
    return Demand(
        names=names,
        cpu=tuple(cpu),
        memory=tuple(memory),
        pods=tuple(pods),
        extras=tuple(extras),
        signature=tuple(signature),
        masks=tuple(signatures),
        steps=_steps(problem, (cpu, memory, pods), extras, len(names) - 3),
    )


def allowed_shapes(problem: PackingProblem, demand: Demand) -> list[int]:
    """Return the shapes within the cap on node size, and the smallest that larger pods need."""
    cap, shapes = problem.settings.max_node_vcpus, problem.shapes
    within = [i for i, shape in enumerate(shapes) if cap == 0 or shape.vcpus <= cap]
    if len(within) == len(shapes):
        return within
    rooms = [_room(shape, demand) for shape in shapes]
    within.sort(key=lambda i: (-shapes[i].vcpus, i))
    allowed = set(within)
    for index, one in enumerate(problem.classes):
        if not one.count:
            continue
        mask, needs = problem.compatible[index], demand.amounts(index)
        if any(mask >> i & 1 and _holds(rooms[i], needs) for i in within):
            continue
        holders = [i for i, room in enumerate(rooms) if mask >> i & 1 and _holds(room, needs)]
        least = min((shapes[i].vcpus for i in holders), default=0)
        allowed.update(i for i in holders if shapes[i].vcpus == least)
    return sorted(allowed)


def find_kinds(
    problem: PackingProblem, demand: Demand, shapes: Iterable[int], settings: PackingSettings
) -> list[Kind]:
    """Return the kinds of some shapes that some class may run on, cheapest first."""
    grouped: dict[tuple[str, int, tuple[int, ...]], list[int]] = {}
    open_to = _open_to(demand.masks, len(problem.shapes))
    for index in shapes:
        shape, mask = problem.shapes[index], open_to[index]
        room = _room(shape, demand)
        # A machine with nothing of a basic resource is a mistake of the catalogue.
        if mask and all(room[:3]):
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
        for index, one in enumerate(f"{many:b}"[: -shapes - 1 : -1]):
            if one == "1":
                found[index] |= bit
    return found


def _room(shape: Shape, demand: Demand) -> tuple[int, ...]:
    amounts = dict(shape.allocatable.items)
    room = [max(amounts.get(name, 0), 0) for name in demand.names]
    return tuple([amount - amount % step for amount, step in zip(room, demand.steps, strict=True)])


def _steps(
    problem: PackingProblem,
    columns: Iterable[Sequence[int]],
    extras: Sequence[tuple[tuple[int, int], ...]],
    many: int,
) -> tuple[int, ...]:
    """Return the greatest common divisor of each resource's amounts, 1 for nothing.

    1 too where some pod asks for none of a basic resource: it is counted as asking for 1.
    """
    asking = [k for k, one in enumerate(problem.classes) if one.count]
    steps = []
    for column in columns:
        amounts = [column[k] for k in asking]
        steps.append(gcd(*amounts) if amounts and all(amounts) else 1)
    beside = [0] * many
    for k in asking:
        for place, amount in extras[k]:
            beside[place] = gcd(beside[place], amount)
    return (*steps, *[step or 1 for step in beside])


def _holds(room: Sequence[int], needs: Iterable[tuple[int, int]]) -> bool:
    return all(amount <= room[place] for place, amount in needs)


def _rough_kind(
    problem: PackingProblem,
    key: tuple[str, int, tuple[int, ...]],
    shapes: list[int],
    settings: PackingSettings,
) -> Kind:
    def weighted(index: int) -> int:
        shape = problem.shapes[index]
        weight = settings.type_weights.get(shape.instance_type, 100)
        return shape.pools[0].price_micros_per_hour * weight // 100

    shapes.sort(key=lambda index: (weighted(index), index))
    price = min(problem.shapes[i].pools[0].price_micros_per_hour for i in shapes)
    return Kind(
        provisioner=key[0],
        room=key[2],
        signatures=key[1],
        shapes=tuple(shapes),
        price=price,
        planning_price=weighted(shapes[0]) + settings.node_fee_micros_per_hour,
    )


def _diversified(
    problem: PackingProblem, kinds: list[Kind], settings: PackingSettings
) -> list[Kind]:
    """Return the kinds, compared by the mean price of the k cheapest pools that could stand in.

    A pool that is missing counts as one at the price ceiling, so a shape that stands alone looks
    as dear as it is.
    """
    pools = [_pools_of(problem, kind, settings) for kind in kinds]
    planned = []
    for kind in kinds:
        of_type: dict[CapacityType, list[int]] = {}
        wanted = 0
        first = None
        for other, prices in zip(kinds, pools, strict=True):
            if not _replaces(other, kind) or other.provisioner != kind.provisioner:
                continue
            for capacity_type, price in prices:
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
        planned.append(
            Kind(
                provisioner=kind.provisioner,
                room=kind.room,
                signatures=kind.signatures,
                shapes=kind.shapes,
                price=kind.price,
                planning_price=mean + settings.node_fee_micros_per_hour,
            )
        )
    return planned


def _pools_of(
    problem: PackingProblem, kind: Kind, settings: PackingSettings
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


def _replaces(one: Kind, other: Kind) -> bool:
    room, asked = one.room, other.room
    return (
        room[0] >= asked[0]
        and room[1] >= asked[1]
        and not other.signatures & ~one.signatures
        and all(a >= b for a, b in zip(room, asked, strict=True))
    )


def front(kinds: Sequence[Kind], limits: Mapping[str, object]) -> list[Kind]:
    """Return the kinds that are worth planning with, by planning price.

    A kind is left out when another has as much of everything, is open to the same classes, is no
    dearer and does not fall under a limit that the first is free of.
    """
    kept: list[Kind] = []
    order = sorted(kinds, key=lambda kind: (kind.planning_price, kind.price, kind.shapes[0]))
    for kind in order:
        replaced = any(
            _replaces(one, kind)
            and one.price <= kind.price
            and (one.provisioner == kind.provisioner or one.provisioner not in limits)
            for one in reversed(kept)
        )
        if not replaced:
            kept.append(kind)
    return kept
