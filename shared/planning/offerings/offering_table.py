"""The offering table: what Provisioners could launch, which depends on neither pods nor nodes.

All launchable offerings are in one order; those that share a property are a bit mask over it. A
table is built once and kept for the next decision about the same Provisioners, prices and
DaemonSets.
"""

import itertools
import operator
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

from msgspec import Struct

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, Offering, OfferingKey
from shared.model.ec2.launches import LaunchOption
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.taints import Taint
from shared.model.provisioner import Provisioner
from shared.model.resources import CPU, Resources
from shared.model.snapshot import ProvisionerSite
from shared.model.values import replace
from shared.packing.problem import NodeType
from shared.planning.rules.labels_and_taints import Port
from shared.planning.rules.limits import counted_amounts
from shared.planning.rules.provisioner_offerings import (
    PLACE_KEYS,
    ProvisionerOffering,
    place_labels,
    provisioner_offerings,
)
from shared.planning.rules.recent import RecentCache

_Value = TypeVar("_Value", bound=Hashable)
_BITS: Final = bytes.maketrans(b"01", b"\x00\x01")
# Tables kept: a few clusters in turn, each with on-demand and spot; about 3 MiB each.
_KEPT: Final = 8
# Sets of topology keys whose domains are kept in a table.
_MOST_DOMAINS: Final = 64
_MOST_NODE_TYPES: Final = 4

# The values a node has of some label keys, None where it lacks the label.
Domain = tuple[str | None, ...]


class LaunchableOffering(Struct, frozen=True):
    """One way to launch a node: an offer, by index, at one of its offerings."""

    offer: int
    offering: Offering


# Launchable offerings, cheapest first.
Options = tuple[LaunchableOffering, ...]


class ProvisionerPicks(Struct, frozen=True, kw_only=True):
    """A Provisioner, where its nodes can be, and the picks of custom labels they may get."""

    provisioner: Provisioner
    site: ProvisionerSite
    picks: tuple[Mapping[str, str], ...]


class OfferingTable:
    """All launchable offerings, cheapest first, then by type, zone, capacity type and offer.

    All other state is caches: the same query always has the same answer.

    Attributes:
        offers: In the order that their provisioners are tried.
        listed: The launchable offerings, in order.
        all: Bit mask of all of them.
        own_keys: Label keys of the offers, without zone and capacity type.
    """

    def __init__(self, offers: Sequence[ProvisionerOffering]) -> None:
        self.offers = tuple(offers)
        self.listed = tuple(
            sorted(
                (
                    LaunchableOffering(index, offering)
                    for index, offer in enumerate(self.offers)
                    for offering in offer.offerings
                ),
                key=self._rank,
            )
        )
        self.all = (1 << len(self.listed)) - 1
        self._amounts = [dict(offer.available.items) for offer in self.offers]
        self._resources = frozenset(name for amounts in self._amounts for name in amounts)
        self.own_keys = frozenset(key for offer in self.offers for key in offer.labels)
        self._node_types: RecentCache[
            tuple[tuple[int, ...], Resources],
            tuple[tuple[NodeType, ...], tuple[Options, ...], tuple[int, ...]],
        ] = RecentCache(_MOST_NODE_TYPES)
        self._allocatable: dict[int, Resources] = {}
        # Bit masks over `listed`.
        self._found: dict[Hashable, dict[Any, int]] = {}
        # Values of offers in ascending order, and a bit mask of those from each on, then none.
        self._ascending: dict[Hashable, tuple[list[int], list[int]]] = {}
        self._counted: dict[int, Resources] = {}
        self._domain_masks: dict[tuple[str, ...], dict[Domain, int]] = {}

    def _rank(self, option: LaunchableOffering) -> tuple[int, str, str, str, int]:
        offering = option.offering
        name = self.offers[option.offer].instance_type.name
        capacity_type = offering.capacity_type.value
        return (offering.price_micros_per_hour, name, offering.zone, capacity_type, option.offer)

    def launch_option(self, option: LaunchableOffering) -> LaunchOption:
        """Return the launch option of a launchable offering."""
        instance_type, offering = self.offers[option.offer].instance_type, option.offering
        if option.offer not in self._allocatable:
            self._allocatable[option.offer] = instance_type.allocatable
        return LaunchOption(
            offering=OfferingKey(
                instance_type=instance_type.name,
                zone=offering.zone,
                capacity_type=offering.capacity_type,
            ),
            price_micros_per_hour=offering.price_micros_per_hour,
            capacity=instance_type.capacity,
            allocatable=self._allocatable[option.offer],
        )

    def variant(self, offer: int) -> tuple[object, ...]:
        """Return an offer's Provisioner and pick of labels, as one value to compare."""
        return self._variants[offer]

    @cached_property
    def _variants(self) -> Sequence[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for offer in self.offers:
            of_type = offer.instance_type.labels
            own = sorted((k, v) for k, v in offer.labels.items() if k not in of_type)
            found.append((offer.provisioner.name, *own))
        return found

    def counted_amounts(self, offer: int) -> Resources:
        """Return what limits count of an instance of an offer, at the highest price of its type."""
        if offer not in self._counted:
            instance_type = self.offers[offer].instance_type
            price = instance_type.highest_price_micros_per_hour
            self._counted[offer] = counted_amounts(instance_type.capacity, price)
        return self._counted[offer]

    def largest_counted(self, options: Iterable[LaunchableOffering]) -> Resources:
        """Return the largest amounts that limits count of any option, by resource."""
        most = Resources()
        for index in sorted({option.offer for option in options}):
            most = most.largest(self.counted_amounts(index))
        return most

    def within_limits(self, left: Resources) -> int:
        """Return a bit mask of the offerings whose instances fit into what limits leave."""
        mask = self.all
        for name, amount in left.items:
            mask &= ~self._counting(name, max(amount, 0) + 1)
        return mask

    def _counting(self, name: str, amount: int) -> int:
        counted = self.counted_amounts
        return self._at_least(("counted", name), lambda index: counted(index)[name], amount)

    def up_to(self, millicores: int) -> int:
        """Return a bit mask of the offerings whose instances have at most so many millicores."""
        return self.all & ~self._at_least("size", self._millicores, millicores + 1)

    def _millicores(self, offer: int) -> int:
        return self.offers[offer].instance_type.capacity[CPU]

    def labels(self, option: LaunchableOffering) -> dict[str, str]:
        """Return the labels of a node launched with an option, without the host's."""
        return {**self.offers[option.offer].labels, **place_labels(option.offering)}

    def label(self, option: LaunchableOffering, key: str) -> str | None:
        """Return the value of a label on a node launched with an option, None without it."""
        if key == keys.ZONE:
            return option.offering.zone
        if key == keys.CAPACITY_TYPE:
            return option.offering.capacity_type.value
        return self.offers[option.offer].labels.get(key)

    def mask_of(self, options: Iterable[LaunchableOffering]) -> int:
        """Return a bit mask of some launchable offerings."""
        return bit_mask([self._numbers[_place(option)] for option in options], len(self.listed))

    @cached_property
    def _numbers(self) -> Mapping[tuple[int, str, str], int]:
        """Places in `listed`."""
        return {_place(option): number for number, option in enumerate(self.listed)}

    def of_mask(self, mask: int) -> Iterable[LaunchableOffering]:
        """Return the launchable offerings of a bit mask, in order."""
        return itertools.compress(self.listed, f"{mask:b}".encode().translate(_BITS)[::-1])

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
                values = [self.label(option, key) for option in self.listed]
                found = self._found["label", key] = _by_value(values)
            return found
        if key not in self.own_keys:
            # Pods may ask for any key: nothing is kept for those that no offer has.
            return {None: self.all} if self.all else {}
        return self.where(("label", key), lambda index: self.offers[index].labels.get(key))

    def by_domain(self, topology_keys: tuple[str, ...]) -> Mapping[Domain, int]:
        """Return bit masks of the offerings by the values of some labels, cheapest domain first."""
        found = self._domain_masks.get(topology_keys)
        if found is None:
            if len(self._domain_masks) >= _MOST_DOMAINS:
                self._domain_masks.clear()
            found = self._domain_masks[topology_keys] = _by_value(
                [
                    tuple([self.label(option, key) for key in topology_keys])
                    for option in self.listed
                ]
            )
        return found

    def where(self, name: Hashable, value: Callable[[int], _Value]) -> Mapping[_Value, int]:
        """Return bit masks of the offerings by a value of their offers, computed by index.

        Args:
            name: Identifies the value; there must be few of these names, as the masks are kept.
            value: Called with the index of each offer, the first time.
        """
        found: dict[_Value, int] | None = self._found.get(name)
        if found is None:
            values = [value(index) for index in range(len(self.offers))]
            found = self._found[name] = _by_value([values[option.offer] for option in self.listed])
        return found

    def of_variant(self, variant: tuple[object, ...]) -> int:
        """Return the launchable offerings of a variant, as a bit mask."""
        return self.where("variant", self.variant)[variant]

    def by_provisioner(self) -> Mapping[str, int]:
        """Return a bit mask of each provisioner's offerings, in the order they are tried."""
        masks = self.where("provisioner", lambda index: self.offers[index].provisioner.name)
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

    def holding(self, requests: Resources) -> int:
        """Return a bit mask of the offerings whose empty nodes have room for the requests."""
        mask = self.all
        for name, amount in requests.items:
            mask &= self._with_room(name, amount)
        return mask

    def _with_room(self, name: str, amount: int) -> int:
        if name not in self._resources:
            # Pods may ask for any resource: nothing is kept for those that no offer has.
            return 0
        return self._at_least(
            ("room", name), lambda index: self._amounts[index].get(name, 0), amount
        )

    def _at_least(self, name: Hashable, value: Callable[[int], int], least: int) -> int:
        """Return a bit mask of the offerings whose offers have at least this value."""
        found = self._ascending.get(name)
        if found is None:
            by_value = _by_value([value(option.offer) for option in self.listed])
            ascending = sorted(by_value)
            larger = itertools.accumulate((by_value[v] for v in reversed(ascending)), operator.or_)
            found = self._ascending[name] = (ascending, [0, *larger][::-1])
        values, masks = found
        return masks[bisect_left(values, least)]

    @cached_property
    def by_size(self) -> list[tuple[int, int]]:
        """Return one offer of each size and the bit mask of all its offerings, most cpu first."""
        first: dict[Resources, int] = {}
        for index, offer in enumerate(self.offers):
            first.setdefault(offer.available, index)
        masks = self.where("size", lambda index: first[self.offers[index].available])
        order = sorted(
            first.values(), key=lambda entry: (-self._amounts[entry].get("cpu", 0), entry)
        )
        return [(value, masks[value]) for value in order]

    def node_types(
        self, accepted: tuple[int, ...], pseudo_capacity: Resources
    ) -> tuple[tuple[NodeType, ...], tuple[Options, ...], tuple[int, ...]]:
        """Return what can be launched as the node types of a packing problem.

        One node type stands for the launchable offerings of one offer that the same bit masks
        contain. The other results are, by node type, these offerings, cheapest first; and by bit
        mask, a bit mask of its node types.

        Args:
            accepted: Bit masks of launchable offerings.
            pseudo_capacity: Pseudo resources of an empty node.
        """
        return self._node_types.get((accepted, pseudo_capacity), self._make_node_types)

    def _make_node_types(
        self, question: tuple[tuple[int, ...], Resources]
    ) -> tuple[tuple[NodeType, ...], tuple[Options, ...], tuple[int, ...]]:
        accepted, pseudo_capacity = question
        node_types: list[NodeType] = []
        options_by_node_type: list[Options] = []
        within: list[list[int]] = [[] for _ in accepted]
        allocatable: dict[int, Resources] = {}
        for index, mask, target_options in self._grouped(accepted):
            offer = self.offers[index]
            if index not in allocatable:
                allocatable[index] = offer.available
                if pseudo_capacity:
                    # No instance has pseudo resources of its own: there is nothing to add up.
                    both = sorted((*offer.available.items, *pseudo_capacity.items))
                    allocatable[index] = Resources(tuple(both))
            left = mask
            while left:
                lowest = left & -left
                left ^= lowest
                within[lowest.bit_length() - 1].append(len(node_types))
            node_types.append(
                NodeType(
                    provisioner=offer.provisioner.name,
                    instance_type=offer.instance_type.name,
                    allocatable=allocatable[index],
                    capacity=self.counted_amounts(index),
                    offerings=tuple([option.offering for option in target_options]),
                    vcpus=offer.instance_type.capacity[CPU] // 1000,
                )
            )
            options_by_node_type.append(target_options)
        masks = tuple(bit_mask(some, len(node_types)) for some in within)
        return tuple(node_types), tuple(options_by_node_type), masks

    def _grouped(self, accepted: Iterable[int]) -> list[tuple[int, int, Options]]:
        """Return the launchable offerings of each offer by the bit masks that contain them.

        Each entry is (offer, bit mask of the bit masks, launchable offerings cheapest first), in
        order of offer and mask. Offerings in no bit mask are left out.
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
            for option in self.of_mask(some) if mask else ():
                groups.setdefault((option.offer, mask), []).append(option)
        return [(offer, mask, tuple(groups[offer, mask])) for offer, mask in sorted(groups)]


_Question = tuple[
    tuple[ProvisionerPicks, ...],
    frozenset[OfferingKey],
    tuple[DaemonSet, ...],
    tuple[InstanceType, ...],
]
_TABLES: Final[RecentCache[_Question, OfferingTable]] = RecentCache(_KEPT)


def offering_table(
    provisioner_picks: Iterable[ProvisionerPicks],
    instance_types: tuple[InstanceType, ...],
    daemonsets: tuple[DaemonSet, ...],
    unavailable: frozenset[OfferingKey],
) -> OfferingTable:
    """Return the offering table of some Provisioners, rebuilt only if any argument differs.

    Args:
        provisioner_picks: In the order that Provisioners are tried.
        instance_types: Sorted by name.
        daemonsets: All of the cluster.
        unavailable: Offerings of which EC2 recently had insufficient capacity.
    """
    # Each status update makes another version, which can launch the same.
    same = tuple(
        replace(entry, provisioner=replace(entry.provisioner, resource_version="", generation=0))
        for entry in provisioner_picks
    )
    return _TABLES.get((same, unavailable, daemonsets, instance_types), _table)


def _table(question: _Question) -> OfferingTable:
    provisioner_picks, unavailable, daemonsets, instance_types = question
    found: list[ProvisionerOffering] = []
    for entry in provisioner_picks:
        found += provisioner_offerings(
            entry.provisioner,
            entry.site,
            instance_types,
            daemonsets,
            unavailable=unavailable,
            picks=entry.picks,
        )
    return OfferingTable(found)


def _place(option: LaunchableOffering) -> tuple[int, str, str]:
    return (option.offer, option.offering.zone, option.offering.capacity_type.value)


def _by_value(values: Sequence[_Value]) -> dict[_Value, int]:
    numbers: dict[_Value, list[int]] = {}
    for number, value in enumerate(values):
        numbers.setdefault(value, []).append(number)
    return {value: bit_mask(some, len(values)) for value, some in numbers.items()}


def bit_mask(numbers: Iterable[int], size: int) -> int:
    """Return a bit mask, built in one go, since every change of a long integer copies it.

    Args:
        numbers: Bits to be set.
        size: More than the largest of them.
    """
    found = bytearray(size // 8 + 1)
    for number in numbers:
        found[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(found, "little")
