"""The offering table: what Provisioners could buy, which depends on neither pods nor nodes.

All launchable offerings are in one order; those that share a property are a bit mask over it. A
table is made once and kept for the next decision about the same Provisioners, prices and
DaemonSets.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Final, TypeVar

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, Offering, OfferingKey
from shared.model.ec2.launches import LaunchOption
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.taints import Taint
from shared.model.provisioner import Provisioner
from shared.model.resources import CPU, Resources
from shared.model.snapshot import ProvisionerSite
from shared.packing.problem import Shape
from shared.scheduling.compatibility import Port
from shared.scheduling.provisioner_offerings import (
    PLACE_KEYS,
    ProvisionerOffering,
    offers,
    place_labels,
)
from shared.scheduling.recent import Recent

_Value = TypeVar("_Value", bound=Hashable)
_BITS: Final = bytes.maketrans(b"01", b"\x00\x01")
# Of tables: a few clusters in turn, each with what it buys on demand and spot; about 3 MiB each.
_KEPT: Final = 8
# Of sets of topology keys whose domains are kept in a table.
_MOST_DOMAINS: Final = 64
_MOST_SHAPES: Final = 4

# The values a node has of some label keys, None where it lacks the label.
Domain = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class LaunchableOffering:
    """One way to buy a node: an offer, by index, at one of its offerings."""

    offer: int
    offering: Offering


# Some of them, cheapest first.
Ways = tuple[LaunchableOffering, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seller:
    """A Provisioner, where its nodes can be, and the picks of custom labels they may get."""

    provisioner: Provisioner
    site: ProvisionerSite
    picks: tuple[Mapping[str, str], ...]


class OfferingTable:
    """All launchable offerings, cheapest first, then by type, zone, capacity type and offer.

    Its only state besides is caches: the same question always has the same answer.

    Attributes:
        offers: In the order that their provisioners are tried.
        listed: The launchable offerings, in order.
        all: Bit mask of all of them.
        own_keys: Keys of their labels, without zone and capacity type.
    """

    def __init__(self, offers: Sequence[ProvisionerOffering]) -> None:
        self.offers = tuple(offers)
        self.listed = tuple(
            sorted(
                (
                    LaunchableOffering(index, way)
                    for index, offer in enumerate(self.offers)
                    for way in offer.offerings
                ),
                key=self._rank,
            )
        )
        self.all = (1 << len(self.listed)) - 1
        self._amounts = [dict(offer.available.items) for offer in self.offers]
        self.own_keys = frozenset(key for offer in self.offers for key in offer.labels)
        self._numbers: dict[tuple[int, str, str], int] | None = None
        self._variants: dict[int, tuple[object, ...]] = {}
        self._shapes: Recent[
            tuple[tuple[int, ...], Resources],
            tuple[tuple[Shape, ...], tuple[Ways, ...], tuple[int, ...]],
        ] = Recent(_MOST_SHAPES)
        self._allocatable: dict[int, Resources] = {}
        self._sizes: list[tuple[int, int]] | None = None
        # Bit masks over `listed`.
        self._found: dict[Hashable, dict[Any, int]] = {}
        self._domain_masks: dict[tuple[str, ...], dict[Domain, int]] = {}

    def _rank(self, launchable: LaunchableOffering) -> tuple[int, str, str, str, int]:
        offering = launchable.offering
        name = self.offers[launchable.offer].instance_type.name
        kind = offering.capacity_type.value
        return (offering.price_micros_per_hour, name, offering.zone, kind, launchable.offer)

    def option(self, launchable: LaunchableOffering) -> LaunchOption:
        """Return what a launch is asked for with a launchable offering."""
        instance_type, offering = self.offers[launchable.offer].instance_type, launchable.offering
        if launchable.offer not in self._allocatable:
            self._allocatable[launchable.offer] = instance_type.allocatable
        return LaunchOption(
            offering=OfferingKey(
                instance_type=instance_type.name,
                zone=offering.zone,
                capacity_type=offering.capacity_type,
            ),
            price_micros_per_hour=offering.price_micros_per_hour,
            capacity=instance_type.capacity,
            allocatable=self._allocatable[launchable.offer],
        )

    def variant(self, offer: int) -> tuple[object, ...]:
        """Return what nodes of one provisioner and one pick of labels have in common."""
        if offer not in self._variants:
            one = self.offers[offer]
            machine = one.instance_type.labels
            own = sorted((k, v) for k, v in one.labels.items() if k not in machine)
            self._variants[offer] = (one.provisioner.name, *own)
        return self._variants[offer]

    def largest_capacity(self, ways: Iterable[LaunchableOffering]) -> Resources:
        """Return the most that any way has of each resource."""
        most = Resources()
        for index in sorted({way.offer for way in ways}):
            most = most.largest(self.offers[index].instance_type.capacity)
        return most

    def labels(self, launchable: LaunchableOffering) -> dict[str, str]:
        """Return the labels a node bought this way has, but for its host's."""
        return {**self.offers[launchable.offer].labels, **place_labels(launchable.offering)}

    def label(self, launchable: LaunchableOffering, key: str) -> str | None:
        """Return the value a node bought this way has of a label, None without it."""
        if key == keys.ZONE:
            return launchable.offering.zone
        if key == keys.CAPACITY_TYPE:
            return launchable.offering.capacity_type.value
        return self.offers[launchable.offer].labels.get(key)

    def mask_of(self, launchables: Iterable[LaunchableOffering]) -> int:
        """Return a bit mask of some launchable offerings."""
        if self._numbers is None:
            self._numbers = {
                _place(launchable): number for number, launchable in enumerate(self.listed)
            }
        return bit_mask(
            [self._numbers[_place(launchable)] for launchable in launchables], len(self.listed)
        )

    def of_mask(self, mask: int) -> Iterable[LaunchableOffering]:
        """Return the launchable offerings of a bit mask, in order."""
        return compress(self.listed, f"{mask:b}".encode().translate(_BITS)[::-1])

    def cheapest(self, mask: int) -> LaunchableOffering:
        """Return the cheapest launchable offering of a bit mask that is not empty."""
        return self.listed[(mask & -mask).bit_length() - 1]

    def labelled(self, key: str, value: str | None) -> int:
        """Return a bit mask of the offerings with a value of a label (None: without it)."""
        return self.by_label(key).get(value, 0)

    def by_label(self, key: str) -> Mapping[str | None, int]:
        """Return bit masks of the offerings by the value of a label, None for those without it."""
        if key in PLACE_KEYS:
            found = self._found.get(("label", key))
            if found is None:
                values = [self.label(launchable, key) for launchable in self.listed]
                found = self._found["label", key] = _by_value(values)
            return found
        if key not in self.own_keys:
            # Pods may ask for any key: nothing is kept for those that no offer has.
            return {None: self.all} if self.all else {}
        return self.where(("label", key), lambda index: self.offers[index].labels.get(key))

    def by_domain(self, over: tuple[str, ...]) -> Mapping[Domain, int]:
        """Return bit masks by the values of some labels, the cheapest offering's first."""
        found = self._domain_masks.get(over)
        if found is None:
            if len(self._domain_masks) >= _MOST_DOMAINS:
                self._domain_masks.clear()
            found = self._domain_masks[over] = _by_value(
                [tuple([self.label(launchable, key) for key in over]) for launchable in self.listed]
            )
        return found

    def where(self, about: Hashable, value: Callable[[int], _Value]) -> Mapping[_Value, int]:
        """Return bit masks of the offerings by a value of their offers, computed by index.

        Args:
            about: Names the value; there must be few of these names, as the masks are kept.
            value: Asked for each offer, the first time.
        """
        found: dict[_Value, int] | None = self._found.get(about)
        if found is None:
            values = [value(index) for index in range(len(self.offers))]
            found = self._found[about] = _by_value(
                [values[launchable.offer] for launchable in self.listed]
            )
        return found

    def of_variant(self, variant: tuple[object, ...]) -> int:
        """Return the launchable offerings of a variant, as a bit mask."""
        return self.where("variant", self.variant)[variant]

    def by_seller(self) -> Mapping[str, int]:
        """Return a bit mask of each provisioner's offerings, in the order they are tried."""
        masks = self.where("seller", lambda index: self.offers[index].provisioner.name)
        names = dict.fromkeys(offer.provisioner.name for offer in self.offers)
        return {name: masks[name] for name in names}

    def by_taints(self) -> Mapping[tuple[Taint, ...], int]:
        """Return a bit mask of the offerings by the taints of their nodes."""
        return self.where("taints", lambda index: self.offers[index].provisioner.taints)

    def by_ports(self) -> Mapping[tuple[Port, ...], int]:
        """Return a bit mask of the offerings by the host ports that DaemonSets take."""
        return self.where("ports", lambda index: self.offers[index].ports)

    def undecided(self) -> Mapping[frozenset[str], int]:
        """Return a bit mask of the offerings by the labels whose values are still open."""
        return self.where("undecided", lambda index: self.offers[index].undecided)

    def holds(self, requests: Resources, offer: int) -> bool:
        """Return whether an empty node of an offer has room for the requests."""
        room = self._amounts[offer]
        for name, amount in requests.items:
            if amount > room.get(name, 0) and amount > 0:
                return False
        return True

    def by_size(self) -> list[tuple[int, int]]:
        """Return an offer of each size and the bit mask of its offerings, most cpu first."""
        if self._sizes is None:
            first: dict[Resources, int] = {}
            for index, offer in enumerate(self.offers):
                first.setdefault(offer.available, index)
            alike = [first[offer.available] for offer in self.offers]
            masks = self.where("size", lambda index: alike[index])
            order = sorted(
                first.values(), key=lambda entry: (-self._amounts[entry].get("cpu", 0), entry)
            )
            self._sizes = [(value, masks[value]) for value in order]
        return self._sizes

    def shapes(
        self, accepted: tuple[int, ...], slots: Resources
    ) -> tuple[tuple[Shape, ...], tuple[Ways, ...], tuple[int, ...]]:
        """Return what can be bought as the shapes of a packing problem.

        One shape is the launchable offerings of one offer that the same of some bit masks hold.
        Also, by shape, these offerings, cheapest first; and by bit mask, its shapes as a bit mask.

        Args:
            accepted: Bit masks of launchable offerings.
            slots: Pseudo resources of an empty node.
        """
        return self._shapes.get((accepted, slots), self._made_shapes)

    def _made_shapes(
        self, question: tuple[tuple[int, ...], Resources]
    ) -> tuple[tuple[Shape, ...], tuple[Ways, ...], tuple[int, ...]]:
        accepted, slots = question
        shapes: list[Shape] = []
        ways: list[Ways] = []
        within: list[list[int]] = [[] for _ in accepted]
        rooms: dict[int, Resources] = {}
        for index, mask, group in self._grouped(accepted):
            offer = self.offers[index]
            if index not in rooms:
                rooms[index] = offer.available
                if slots:
                    # Slots are pseudo resources that no machine has: nothing is to be added up.
                    both = sorted((*offer.available.items, *slots.items))
                    rooms[index] = Resources(tuple(both))
            left = mask
            while left:
                lowest = left & -left
                left ^= lowest
                within[lowest.bit_length() - 1].append(len(shapes))
            shapes.append(
                Shape(
                    provisioner=offer.provisioner.name,
                    instance_type=offer.instance_type.name,
                    allocatable=rooms[index],
                    capacity=offer.instance_type.capacity,
                    pools=tuple([launchable.offering for launchable in group]),
                    vcpus=offer.instance_type.capacity[CPU] // 1000,
                )
            )
            ways.append(group)
        masks = tuple(bit_mask(some, len(shapes)) for some in within)
        return tuple(shapes), tuple(ways), masks

    def _grouped(self, accepted: Iterable[int]) -> list[tuple[int, int, Ways]]:
        """Return the launchable offerings of each offer by the bit masks that hold them.

        Each entry is (offer, bit mask of the bit masks, launchable offerings, cheapest first), in
        order of offer and mask. Offerings that are in none are left out.
        """
        blocks = {0: self.all}
        for number, some_accepted in enumerate(accepted):
            split: dict[int, int] = {}
            for mask, some in blocks.items():
                inside = some & some_accepted
                if inside:
                    split[mask | 1 << number] = inside
                if inside != some:
                    split[mask] = some ^ inside
            blocks = split
        groups: dict[tuple[int, int], list[LaunchableOffering]] = {}
        for mask, some in blocks.items():
            for launchable in self.of_mask(some) if mask else ():
                groups.setdefault((launchable.offer, mask), []).append(launchable)
        return [(offer, mask, tuple(groups[offer, mask])) for offer, mask in sorted(groups)]


_Question = tuple[
    tuple[Seller, ...],
    frozenset[OfferingKey],
    tuple[DaemonSet, ...],
    tuple[InstanceType, ...],
]
_TABLES: Final[Recent[_Question, OfferingTable]] = Recent(_KEPT)


def offering_table(
    sellers: Iterable[Seller],
    instance_types: tuple[InstanceType, ...],
    daemonsets: tuple[DaemonSet, ...],
    unavailable: frozenset[OfferingKey],
) -> OfferingTable:
    """Return the table of what some Provisioners could buy, made anew only if any of this differs.

    Args:
        sellers: In the order that Provisioners are tried.
        instance_types: Sorted by name.
        daemonsets: All of the cluster.
        unavailable: Offerings EC2 was out of lately.
    """
    # Each write of a status makes another version, which sells the same.
    same = tuple(
        replace(seller, provisioner=replace(seller.provisioner, resource_version="", generation=0))
        for seller in sellers
    )
    return _TABLES.get((same, unavailable, daemonsets, instance_types), _table)


def _table(question: _Question) -> OfferingTable:
    sellers, unavailable, daemonsets, instance_types = question
    found: list[ProvisionerOffering] = []
    for seller in sellers:
        found += offers(
            seller.provisioner,
            seller.site,
            instance_types,
            daemonsets,
            unavailable=unavailable,
            picks=seller.picks,
        )
    return OfferingTable(found)


def _place(launchable: LaunchableOffering) -> tuple[int, str, str]:
    return (launchable.offer, launchable.offering.zone, launchable.offering.capacity_type.value)


def _by_value(values: Sequence[_Value]) -> dict[_Value, int]:
    numbers: dict[_Value, list[int]] = {}
    for number, value in enumerate(values):
        numbers.setdefault(value, []).append(number)
    return {value: bit_mask(some, len(values)) for value, some in numbers.items()}


def bit_mask(numbers: Iterable[int], size: int) -> int:
    """Return a bit mask; made in one go, since every change of a long integer copies it.

    Args:
        numbers: Bits to be set.
        size: More than the largest of them.
    """
    found = bytearray(size // 8 + 1)
    for number in numbers:
        found[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(found, "little")
