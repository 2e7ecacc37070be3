"""What can be bought, asked by what a pod demands of labels and taints."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.model import labels as keys
from shared.model.instance_types import Offering
from shared.model.resources import Resources
from shared.scheduling.existing import Room
from shared.scheduling.offers import Offer, place_labels
from shared.scheduling.signatures import Signature, SignatureMatcher

# The values a node has of some label keys, None where it lacks the label.
Domain = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Ware:
    """One way to buy a node: an offer, by index, at one of its offerings."""

    offer: int
    offering: Offering


class Wares:
    """Offers and rooms with the answers about them that were found so far.

    Holds nothing but caches: the same question always has the same answer.
    """

    def __init__(self, offers: Sequence[Offer], rooms: Sequence[Room]) -> None:
        self.offers = tuple(offers)
        self.rooms = tuple(rooms)
        self._amounts = [dict(one.available.items) for one in self.offers]
        self._variants: dict[int, tuple[object, ...]] = {}
        self._ways: dict[Signature, dict[int, tuple[Offering, ...]]] = {}
        self._index: _Index | None = None
        self._masks: dict[Signature, int] = {}
        self._sellers: dict[Signature, frozenset[str]] = {}
        self._interned: dict[Signature, Signature] = {}
        self._largest: dict[Signature, list[int]] = {}
        self._open: dict[Signature, int] = {}
        self._prices: dict[
            tuple[Signature, tuple[str, ...]], list[tuple[int, dict[Domain, int]]]
        ] = {}
        self._domains: dict[tuple[Signature, tuple[str, ...], Resources], dict[Domain, int]] = {}

    def variant(self, offer: int) -> tuple[object, ...]:
        """Return what nodes of one provisioner and one pick of labels have in common."""
        if offer not in self._variants:
            one = self.offers[offer]
            machine = one.instance_type.labels
            own = sorted((k, v) for k, v in one.labels.items() if k not in machine)
            self._variants[offer] = (one.provisioner.name, *own)
        return self._variants[offer]

    def largest_capacity(self, ways: Iterable[Ware]) -> Resources:
        """Return the most that any way has of each resource."""
        most = Resources()
        for index in sorted({one.offer for one in ways}):
            most = most.largest(self.offers[index].instance_type.capacity)
        return most

    def labels(self, ware: Ware) -> dict[str, str]:
        """Return the labels a node bought this way has, but for its host's."""
        return {**self.offers[ware.offer].labels, **place_labels(ware.offering)}

    def label(self, ware: Ware, key: str) -> str | None:
        """Return the value a node bought this way has of a label."""
        if key == keys.ZONE:
            return ware.offering.zone
        if key == keys.CAPACITY_TYPE:
            return ware.offering.capacity_type.value
        return self.offers[ware.offer].labels.get(key)

    def ways(self, signature: Signature) -> Mapping[int, tuple[Offering, ...]]:
        """Return the offerings that a signature accepts, by offer; absent where there are none."""
        if signature not in self._ways:
            matcher = SignatureMatcher((signature,))
            self._ways[signature] = {
                index: groups[0][1]
                for index, offer in enumerate(self.offers)
                if (groups := matcher.by_offering(offer))
            }
        return self._ways[signature]

    @property
    def listed(self) -> tuple[Ware, ...]:
        """All wares, cheapest first, then by type, zone, capacity type and offer."""
        return self._listing.listed

    def accepting(self, signature: Signature) -> int:
        """Return the wares that a signature accepts, as a bit mask over `listed`."""
        if signature not in self._masks:
            numbers = self._listing.numbers
            mask = 0
            for index, offerings in self.ways(signature).items():
                for offering in offerings:
                    mask |= 1 << numbers[index, offering.zone, offering.capacity_type]
            self._masks[signature] = mask
        return self._masks[signature]

    def mask_of(self, wares: Iterable[Ware]) -> int:
        """Return a bit mask over `listed` of some wares."""
        numbers = self._listing.numbers
        mask = 0
        for one in wares:
            mask |= 1 << numbers[one.offer, one.offering.zone, one.offering.capacity_type]
        return mask

    def labelled(self, key: str, value: str | None) -> int:
        """Return the wares with a value of a label (None: without it), as a bit mask."""
        return self._listing.where(("label", key), lambda ware: self.label(ware, key)).get(value, 0)

    def of_variant(self, variant: tuple[object, ...]) -> int:
        """Return the wares of a variant, as a bit mask."""
        return self._listing.where("variant", lambda ware: self.variant(ware.offer))[variant]

    def by_seller(self) -> Mapping[object, int]:
        """Return the wares of each provisioner as a bit mask, in the order they are tried."""
        masks = self._listing.where("seller", lambda ware: self.offers[ware.offer].provisioner.name)
        names = dict.fromkeys(one.provisioner.name for one in self.offers)
        return {name: masks[name] for name in names}

    @property
    def _listing(self) -> "_Index":
        if self._index is None:
            self._index = _Index(self.offers)
        return self._index

    def rooms_accepting(self, signature: Signature) -> int:
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

    def sellers(self, signature: Signature) -> frozenset[str]:
        """Return the provisioners with anything that a signature accepts."""
        if signature not in self._sellers:
            self._sellers[signature] = frozenset(
                self.offers[index].provisioner.name for index in self.ways(signature)
            )
        return self._sellers[signature]

    def intern(self, signature: Signature) -> Signature:
        """Return the one object of equal signatures, so that they are quickly told apart."""
        return self._interned.setdefault(signature, signature)

    def could_hold(self, signature: Signature, requests: Resources) -> bool:
        """Return whether some empty node that a signature accepts has room for the requests."""
        if signature not in self._largest:
            self._largest[signature] = sorted(
                self.ways(signature), key=lambda one: (-self._amounts[one].get("cpu", 0), one)
            )
        return any(self.holds(requests, one) for one in self._largest[signature])

    def domains(
        self, signature: Signature, over: tuple[str, ...], requests: Resources
    ) -> Mapping[Domain, int]:
        """Return where new nodes for such a pod could be, each with the cheapest price there."""
        question = (signature, over, requests)
        if question not in self._domains:
            found: dict[Domain, int] = {}
            for offer, prices in self._by_offer(signature, over):
                if self.holds(requests, offer):
                    for domain, price in prices.items():
                        found[domain] = min(price, found.get(domain, price))
            self._domains[question] = found
        return self._domains[question]

    def _by_offer(
        self, signature: Signature, over: tuple[str, ...]
    ) -> list[tuple[int, dict[Domain, int]]]:
        question = (signature, over)
        if question not in self._prices:
            listed = []
            for index, offerings in self.ways(signature).items():
                prices: dict[Domain, int] = {}
                for offering in reversed(offerings):
                    ware = Ware(index, offering)
                    domain = tuple(self.label(ware, key) for key in over)
                    prices[domain] = offering.price_micros_per_hour
                listed.append((index, prices))
            self._prices[question] = listed
        return self._prices[question]


class _Index:
    """All wares in one order, and which have something in common."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        def rank(ware: Ware) -> tuple[int, str, str, str, int]:
            offering = ware.offering
            name = offers[ware.offer].instance_type.name
            kind = offering.capacity_type.value
            return (offering.price_micros_per_hour, name, offering.zone, kind, ware.offer)

        self.listed = tuple(
            sorted(
                (Ware(index, way) for index, one in enumerate(offers) for way in one.offerings),
                key=rank,
            )
        )
        self.numbers = {
            (one.offer, one.offering.zone, one.offering.capacity_type): number
            for number, one in enumerate(self.listed)
        }
        self._found: dict[Hashable, dict[object, int]] = {}

    def where(self, about: Hashable, value: Callable[[Ware], object]) -> Mapping[object, int]:
        """Return bit masks of the wares by a value of theirs."""
        if about not in self._found:
            masks: dict[object, int] = {}
            for number, one in enumerate(self.listed):
                found = value(one)
                masks[found] = masks.get(found, 0) | 1 << number
            self._found[about] = masks
        return self._found[about]
