"""What can be bought, asked by what a pod demands of labels and taints.

All launchable offerings are in one order; those that share a property are a bit mask over it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, TypeVar

from shared.model import labels as keys
from shared.model.ec2.instance_types import Offering
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.scheduling.compatibility import tolerated
from shared.scheduling.existing_nodes import ExistingNode
from shared.scheduling.node_constraints import UNKNOWN_HOST, NodeConstraints, ports_taken
from shared.scheduling.provisioner_offerings import PLACE_KEYS, ProvisionerOffering, place_labels

_Value = TypeVar("_Value", bound=Hashable)
_BITS: Final = bytes.maketrans(b"01", b"\x00\x01")


# The values a node has of some label keys, None where it lacks the label.
Domain = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class LaunchableOffering:
    """One way to buy a node: an offer, by index, at one of its offerings."""

    offer: int
    offering: Offering


class OfferingIndex:
    """All launchable offerings, cheapest first, then by type, zone, capacity type and offer.

    Its only state besides is caches: the same question always has the same answer.

    Attributes:
        offers: In the order that their provisioners are tried.
        rooms: Nodes that are there or on their way.
        listed: The launchable offerings, in order.
    """

    def __init__(
        self, offers: Sequence[ProvisionerOffering], rooms: Sequence[ExistingNode]
    ) -> None:
        self.offers = tuple(offers)
        self.rooms = tuple(rooms)
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
        self._all = (1 << len(self.listed)) - 1
        self._amounts = [dict(offer.available.items) for offer in self.offers]
        self._numbers: dict[tuple[int, str, str], int] | None = None
        self._variants: dict[int, tuple[object, ...]] = {}
        self._interned: dict[NodeConstraints, NodeConstraints] = {}
        self._sizes: list[tuple[int, int]] | None = None
        # Bit masks over `listed`, and one over the rooms.
        self._found: dict[Hashable, dict[object, int]] = {}
        self._domain_masks: dict[tuple[str, ...], dict[Domain, int]] = {}
        self._allowed: dict[Requirement, int] = {}
        self._accepted: dict[NodeConstraints, int] = {}
        self._open: dict[NodeConstraints, int] = {}
        self._sellers: dict[NodeConstraints, frozenset[str]] = {}
        self._domains: dict[
            tuple[NodeConstraints, tuple[str, ...], Resources], dict[Domain, int]
        ] = {}

    def _rank(self, launchable: LaunchableOffering) -> tuple[int, str, str, str, int]:
        offering = launchable.offering
        name = self.offers[launchable.offer].instance_type.name
        kind = offering.capacity_type.value
        return (offering.price_micros_per_hour, name, offering.zone, kind, launchable.offer)

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

    def _of_mask(self, mask: int) -> Iterable[LaunchableOffering]:
        """Return the launchable offerings of a bit mask, in order."""
        return compress(self.listed, f"{mask:b}".encode().translate(_BITS)[::-1])

    def labelled(self, key: str, value: str | None) -> int:
        """Return a bit mask of the offerings with a value of a label (None: without it)."""
        return self._by_label(key).get(value, 0)

    def _by_label(self, key: str) -> Mapping[object, int]:
        """Return bit masks of the offerings by the value of a label, None for those without it."""
        if key not in PLACE_KEYS:
            return self._where(("label", key), lambda index: self.offers[index].labels.get(key))
        found = self._found.get(("label", key))
        if found is None:
            values = [self.label(launchable, key) for launchable in self.listed]
            found = self._found["label", key] = _by_value(values)
        return found

    def _by_domain(self, over: tuple[str, ...]) -> Mapping[Domain, int]:
        """Return bit masks by the values of some labels, the cheapest offering's first."""
        if over not in self._domain_masks:
            self._domain_masks[over] = _by_value(
                [tuple([self.label(launchable, key) for key in over]) for launchable in self.listed]
            )
        return self._domain_masks[over]

    def _where(self, about: Hashable, value: Callable[[int], object]) -> Mapping[object, int]:
        """Return bit masks of the offerings by a value of their offers, computed by index."""
        found = self._found.get(about)
        if found is None:
            values = [value(index) for index in range(len(self.offers))]
            found = self._found[about] = _by_value(
                [values[launchable.offer] for launchable in self.listed]
            )
        return found

    def of_variant(self, variant: tuple[object, ...]) -> int:
        """Return the launchable offerings of a variant, as a bit mask."""
        return self._where("variant", self.variant)[variant]

    def by_seller(self) -> Mapping[object, int]:
        """Return a bit mask of each provisioner's offerings, in the order they are tried."""
        masks = self._where("seller", lambda index: self.offers[index].provisioner.name)
        names = dict.fromkeys(offer.provisioner.name for offer in self.offers)
        return {name: masks[name] for name in names}

    def accepting(self, signature: NodeConstraints) -> int:
        """Return the launchable offerings that a signature accepts, as a bit mask."""
        if signature not in self._accepted:
            mask = 0
            for term in signature.terms:
                mask |= self._allowing(term)
            by_taints = self._where("taints", lambda index: self.offers[index].provisioner.taints)
            for taints, some in by_taints.items():
                assert isinstance(taints, tuple)
                if not tolerated(taints, signature.tolerations, strict=signature.strict):
                    mask &= ~some
            if signature.ports:
                for ports, some in self._where(
                    "ports", lambda index: self.offers[index].ports
                ).items():
                    assert isinstance(ports, tuple)
                    if ports_taken(signature.ports, ports):
                        mask &= ~some
            self._accepted[signature] = mask
        return self._accepted[signature]

    def _allowing(self, term: Requirements) -> int:
        mask = self._all
        undecided = self._where("undecided", lambda index: self.offers[index].undecided)
        for requirement in term:
            mask &= self._allowed_by(requirement)
            # A term about a label whose value is still open needs a pick of that value.
            for open_keys, some in undecided.items():
                assert isinstance(open_keys, frozenset)
                if requirement.key in open_keys:
                    mask &= ~some
        return mask

    def _allowed_by(self, requirement: Requirement) -> int:
        if requirement not in self._allowed:
            mask = 0
            if requirement.key == keys.HOSTNAME:
                mask = self._all if requirement.allows(UNKNOWN_HOST) else 0
            else:
                for value, some in self._by_label(requirement.key).items():
                    assert value is None or isinstance(value, str)
                    if requirement.allows(value):
                        mask |= some
            self._allowed[requirement] = mask
        return self._allowed[requirement]

    def grouped(
        self, signatures: Sequence[NodeConstraints]
    ) -> list[tuple[int, int, tuple[LaunchableOffering, ...]]]:
        """Return the launchable offerings of each offer by the signatures that accept them.

        Each entry is (offer, bit mask of the signatures, launchable offerings, cheapest first), in
        order of offer and mask. Offerings that none of the signatures accepts are left out.
        """
        blocks = {0: self._all}
        for number, signature in enumerate(signatures):
            accepted = self.accepting(signature)
            split: dict[int, int] = {}
            for mask, some in blocks.items():
                inside = some & accepted
                if inside:
                    split[mask | 1 << number] = inside
                if inside != some:
                    split[mask] = some ^ inside
            blocks = split
        groups: dict[tuple[int, int], list[LaunchableOffering]] = {}
        for mask, some in blocks.items():
            for launchable in self._of_mask(some) if mask else ():
                groups.setdefault((launchable.offer, mask), []).append(launchable)
        return [(offer, mask, tuple(groups[offer, mask])) for offer, mask in sorted(groups)]

    def rooms_accepting(self, signature: NodeConstraints) -> int:
        """Return the rooms that a signature accepts, as a bit mask."""
        if signature not in self._open:
            mask = 0
            for index, room in enumerate(self.rooms):
                if signature.accepts(room.labels, room.taints):
                    mask |= 1 << index
            self._open[signature] = mask
        return self._open[signature]

    def holds(self, requests: Resources, offer: int) -> bool:
        """Return whether an empty node of an offer has room for the requests."""
        room = self._amounts[offer]
        for name, amount in requests.items:
            if amount > room.get(name, 0) and amount > 0:
                return False
        return True

    def sellers(self, signature: NodeConstraints) -> frozenset[str]:
        """Return the provisioners with anything that a signature accepts."""
        if signature not in self._sellers:
            accepted = self.accepting(signature)
            self._sellers[signature] = frozenset(
                str(name) for name, own in self.by_seller().items() if own & accepted
            )
        return self._sellers[signature]

    def intern(self, signature: NodeConstraints) -> NodeConstraints:
        """Return the one object of equal signatures, so that they are quickly told apart."""
        return self._interned.setdefault(signature, signature)

    def could_hold(self, signature: NodeConstraints, requests: Resources, among: int = -1) -> bool:
        """Return whether some empty node that a signature accepts has room for the requests.

        Args:
            among: A bit mask of the launchable offerings to be looked at; -1 for all.
        """
        accepted = self.accepting(signature) & among
        return any(
            some & accepted and self.holds(requests, offer) for offer, some in self._by_size()
        )

    def _by_size(self) -> list[tuple[int, int]]:
        """Return an offer of each size and the bit mask of its offerings, most cpu first."""
        if self._sizes is None:
            first: dict[Resources, int] = {}
            for index, offer in enumerate(self.offers):
                first.setdefault(offer.available, index)
            alike = [first[offer.available] for offer in self.offers]
            masks = self._where("size", lambda index: alike[index])
            order = sorted(
                first.values(), key=lambda entry: (-self._amounts[entry].get("cpu", 0), entry)
            )
            self._sizes = [(value, masks[value]) for value in order]
        return self._sizes

    def domains(
        self, signature: NodeConstraints, over: tuple[str, ...], requests: Resources
    ) -> Mapping[Domain, int]:
        """Return where new nodes for such a pod could be, each with the cheapest price there."""
        question = (signature, over, requests)
        if question not in self._domains:
            accepted = self.accepting(signature)
            known: dict[int, bool] = {}
            found: dict[Domain, int] = {}
            for domain, some in self._by_domain(over).items():
                for launchable in self._of_mask(accepted & some):
                    if launchable.offer not in known:
                        known[launchable.offer] = self.holds(requests, launchable.offer)
                    if known[launchable.offer]:
                        found[domain] = launchable.offering.price_micros_per_hour
                        break
            self._domains[question] = found
        return self._domains[question]


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
