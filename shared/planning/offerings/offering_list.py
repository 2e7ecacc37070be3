"""All launchable offerings in one order, and bit masks of those that share a property."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, TypeVar

from shared.model import labels as keys
from shared.model.ec2.instance_types import Offering
from shared.model.requirements import Requirement, Requirements
from shared.scheduling.compatibility import tolerated
from shared.scheduling.node_constraints import UNKNOWN_HOST, NodeConstraints, ports_taken
from shared.scheduling.provisioner_offerings import PLACE_KEYS, ProvisionerOffering

_Value = TypeVar("_Value", bound=Hashable)
_BITS: Final = bytes.maketrans(b"01", b"\x00\x01")


# The values a node has of some label keys, None where it lacks the label.
Domain = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class LaunchableOffering:
    """One way to buy a node: an offer, by index, at one of its offerings."""

    offer: int
    offering: Offering


class OfferingList:
    """All launchable offerings, cheapest first, then by type, zone, capacity type and offer.

    Its only state is caches: the same call always returns the same result.
    """

    def __init__(self, offers: Sequence[ProvisionerOffering]) -> None:
        """List the launchable offerings of some offers."""

        def rank(launchable: LaunchableOffering) -> tuple[int, str, str, str, int]:
            offering = launchable.offering
            name = offers[launchable.offer].instance_type.name
            kind = offering.capacity_type.value
            return (offering.price_micros_per_hour, name, offering.zone, kind, launchable.offer)

        self._offers = offers
        self.listed = tuple(
            sorted(
                (
                    LaunchableOffering(index, way)
                    for index, offer in enumerate(offers)
                    for way in offer.offerings
                ),
                key=rank,
            )
        )
        self._all = (1 << len(self.listed)) - 1
        self._numbers: dict[tuple[int, str, str], int] | None = None
        self._found: dict[Hashable, dict[object, int]] = {}
        self._by_domain: dict[tuple[str, ...], dict[Domain, int]] = {}
        self._allowed: dict[Requirement, int] = {}
        self._accepted: dict[NodeConstraints, int] = {}

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

    def label(self, launchable: LaunchableOffering, key: str) -> str | None:
        """Return the value a node bought this way has of a label, None without it."""
        if key == keys.ZONE:
            return launchable.offering.zone
        if key == keys.CAPACITY_TYPE:
            return launchable.offering.capacity_type.value
        return self._offers[launchable.offer].labels.get(key)

    def labelled(self, key: str) -> Mapping[object, int]:
        """Return bit masks of the offerings by the value of a label, None for those without it."""
        if key not in PLACE_KEYS:
            return self.where(("label", key), lambda index: self._offers[index].labels.get(key))
        found = self._found.get(("label", key))
        if found is None:
            values = [self.label(launchable, key) for launchable in self.listed]
            found = self._found["label", key] = _by_value(values)
        return found

    def by_domain(self, over: tuple[str, ...]) -> Mapping[Domain, int]:
        """Return bit masks by the values of some labels, the cheapest offering's first."""
        if over not in self._by_domain:
            self._by_domain[over] = _by_value(
                [tuple([self.label(launchable, key) for key in over]) for launchable in self.listed]
            )
        return self._by_domain[over]

    def where(self, about: Hashable, value: Callable[[int], object]) -> Mapping[object, int]:
        """Return bit masks of the offerings by a value of their offers, computed by index."""
        found = self._found.get(about)
        if found is None:
            values = [value(index) for index in range(len(self._offers))]
            found = self._found[about] = _by_value(
                [values[launchable.offer] for launchable in self.listed]
            )
        return found

    def accepting(self, signature: NodeConstraints) -> int:
        """Return the launchable offerings that a signature accepts, as a bit mask."""
        if signature not in self._accepted:
            mask = 0
            for term in signature.terms:
                mask |= self._allowing(term)
            offers = self._offers
            by_taints = self.where("taints", lambda index: offers[index].provisioner.taints)
            for taints, some in by_taints.items():
                assert isinstance(taints, tuple)
                if not tolerated(taints, signature.tolerations, strict=signature.strict):
                    mask &= ~some
            if signature.ports:
                for ports, some in self.where("ports", lambda index: offers[index].ports).items():
                    assert isinstance(ports, tuple)
                    if ports_taken(signature.ports, ports):
                        mask &= ~some
            self._accepted[signature] = mask
        return self._accepted[signature]

    def _allowing(self, term: Requirements) -> int:
        mask = self._all
        undecided = self.where("undecided", lambda index: self._offers[index].undecided)
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
                for value, some in self.labelled(requirement.key).items():
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
            for launchable in self.of_mask(some) if mask else ():
                groups.setdefault((launchable.offer, mask), []).append(launchable)
        return [(offer, mask, tuple(groups[offer, mask])) for offer, mask in sorted(groups)]


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
