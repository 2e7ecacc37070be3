"""Turns demands, offers and rooms into a packing problem, and remembers what its indexes mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.model.instance_types import Offering
from shared.model.resources import CPU, Resources
from shared.packing.problem import Bin, PackingProblem, PackingSettings, Pool, Shape
from shared.packing.problem import PodClass as PackedClass
from shared.scheduling.classes import PodClass
from shared.scheduling.demands import Demand
from shared.scheduling.existing import Room
from shared.scheduling.offers import Offer
from shared.scheduling.signatures import Signature, SignatureMatcher, signature_of
from shared.scheduling.topology import HostRule, slots_left, slots_of_empty_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A packing problem and what stands behind its indexes.

    Attributes:
        offers: By shape index.
        offerings: By shape index, then pool index.
        provisioner_of: By demand index, the provisioner it was offered; absent when none could
            serve it.
    """

    problem: PackingProblem
    offers: tuple[Offer, ...]
    offerings: tuple[tuple[Offering, ...], ...]
    provisioner_of: Mapping[int, str] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What stays the same while one decision is packed, maybe several times.

    Attributes:
        offers: In the order provisioners are tried.
        limits: By provisioner, what its limits have left; absent for none.
    """

    classes: tuple[PodClass, ...]
    offers: tuple[Offer, ...]
    rooms: tuple[Room, ...]
    rules: tuple[HostRule, ...]
    limits: Mapping[str, Resources] = field(hash=False)
    settings: PackingSettings
    seed: int


def assemble(
    ground: Ground, demands: Sequence[Demand], excluded: Mapping[int, frozenset[str]]
) -> Assembled:
    """Return the packing problem of these demands.

    Each demand is offered only the first provisioner, in the order of `offers`, that could serve
    it and is not excluded for it.

    Args:
        excluded: By demand index, provisioners whose limits turned it away before.
    """
    classes, rooms = ground.classes, ground.rooms
    signatures: dict[Signature, int] = {}
    of_demand = []
    for demand in demands:
        signature = signature_of(classes[demand.class_index].scheduling, demand.pinned)
        of_demand.append(signatures.setdefault(signature, len(signatures)))
    matcher = SignatureMatcher(tuple(signatures))
    empty_slots = slots_of_empty_node(ground.rules)
    shapes: list[Shape] = []
    behind: list[Offer] = []
    offerings: list[tuple[Offering, ...]] = []
    accepted: list[int] = []
    for offer in ground.offers:
        for mask, group in matcher.by_offering(offer):
            shapes.append(_shape(offer, group, empty_slots))
            behind.append(offer)
            offerings.append(group)
            accepted.append(mask)
    compatible = []
    provisioner_of = {}
    for index, demand in enumerate(demands):
        bit = 1 << of_demand[index]
        turned_away = excluded.get(index, frozenset())
        chosen, mask = _first_provisioner(demand, shapes, accepted, bit, turned_away)
        compatible.append(mask)
        if chosen:
            provisioner_of[index] = chosen
    problem = PackingProblem(
        classes=tuple(PackedClass(requests=d.requests, count=d.count) for d in demands),
        shapes=tuple(shapes),
        bins=tuple(
            Bin(name=room.name, available=room.available + slots_left(ground.rules, room.pods))
            for room in rooms
        ),
        compatible=tuple(compatible),
        compatible_bins=tuple(_bin_mask(classes, demand, rooms) for demand in demands),
        limits=ground.limits,
        settings=ground.settings,
        seed=ground.seed,
    )
    return Assembled(
        problem=problem,
        offers=tuple(behind),
        offerings=tuple(offerings),
        provisioner_of=provisioner_of,
    )


def _shape(offer: Offer, group: Sequence[Offering], slots: Resources) -> Shape:
    return Shape(
        provisioner=offer.provisioner.name,
        instance_type=offer.instance_type.name,
        allocatable=offer.available + slots,
        capacity=offer.instance_type.capacity,
        pools=tuple(
            Pool(
                zone=one.zone,
                capacity_type=one.capacity_type,
                price_micros_per_hour=one.price_micros_per_hour,
            )
            for one in group
        ),
        vcpus=offer.instance_type.capacity[CPU] // 1000,
    )


def _first_provisioner(
    demand: Demand,
    shapes: Sequence[Shape],
    accepted: Sequence[int],
    bit: int,
    turned_away: frozenset[str],
) -> tuple[str, int]:
    chosen = ""
    mask = 0
    for index, shape in enumerate(shapes):
        if chosen and shape.provisioner != chosen:
            break
        if not accepted[index] & bit or shape.provisioner in turned_away:
            continue
        if demand.requests.fits(shape.allocatable):
            chosen = shape.provisioner
            mask |= 1 << index
    return chosen, mask


def _bin_mask(classes: Sequence[PodClass], demand: Demand, rooms: Sequence[Room]) -> int:
    scheduling = classes[demand.class_index].scheduling
    mask = 0
    for index, room in enumerate(rooms):
        if demand.pinned.allow_labels(room.labels) and room.accepts(scheduling):
            mask |= 1 << index
    return mask
