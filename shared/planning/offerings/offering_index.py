"""What can be bought, asked by what a pod demands of labels and taints."""

from collections.abc import Iterable, Mapping, Sequence

from shared.model.ec2.instance_types import Offering
from shared.model.resources import Resources
from shared.planning.offerings.offering_list import Domain, LaunchableOffering, OfferingList
from shared.scheduling.existing_nodes import ExistingNode
from shared.scheduling.node_constraints import NodeConstraints
from shared.scheduling.provisioner_offerings import ProvisionerOffering, place_labels


class OfferingIndex:
    """Offers and rooms with the answers about them that were found so far.

    Holds nothing but caches: the same question always has the same answer.
    """

    def __init__(
        self, offers: Sequence[ProvisionerOffering], rooms: Sequence[ExistingNode]
    ) -> None:
        self.offers = tuple(offers)
        self.rooms = tuple(rooms)
        self._amounts = [dict(offer.available.items) for offer in self.offers]
        self._variants: dict[int, tuple[object, ...]] = {}
        self._ways: dict[NodeConstraints, dict[int, tuple[Offering, ...]]] = {}
        self._listing = OfferingList(self.offers)
        self._sellers: dict[NodeConstraints, frozenset[str]] = {}
        self._interned: dict[NodeConstraints, NodeConstraints] = {}
        self._sizes: list[tuple[int, int]] | None = None
        self._open: dict[NodeConstraints, int] = {}
        self._domains: dict[
            tuple[NodeConstraints, tuple[str, ...], Resources], dict[Domain, int]
        ] = {}

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
        """Return the value a node bought this way has of a label."""
        return self._listing.label(launchable, key)

    def ways(self, signature: NodeConstraints) -> Mapping[int, tuple[Offering, ...]]:
        """Return the offerings that a signature accepts, by offer; absent where there are none."""
        if signature not in self._ways:
            found: dict[int, list[Offering]] = {}
            for launchable in self._listing.of_mask(self.accepting(signature)):
                found.setdefault(launchable.offer, []).append(launchable.offering)
            self._ways[signature] = {index: tuple(found[index]) for index in sorted(found)}
        return self._ways[signature]

    @property
    def listed(self) -> tuple[LaunchableOffering, ...]:
        """All launchable offerings, cheapest first, then by type, zone, capacity type and offer."""
        return self._listing.listed

    def accepting(self, signature: NodeConstraints) -> int:
        """Return the launchable offerings a signature accepts, as a bit mask over `listed`."""
        return self._listing.accepting(signature)

    def grouped(
        self, signatures: Sequence[NodeConstraints]
    ) -> list[tuple[int, int, tuple[LaunchableOffering, ...]]]:
        """Return launchable offerings by offer and signatures: see `OfferingList.grouped`."""
        return self._listing.grouped(signatures)

    def mask_of(self, launchables: Iterable[LaunchableOffering]) -> int:
        """Return a bit mask over `listed` of some launchable offerings."""
        return self._listing.mask_of(launchables)

    def labelled(self, key: str, value: str | None) -> int:
        """Return a bit mask of the offerings with a value of a label (None: without it)."""
        return self._listing.labelled(key).get(value, 0)

    def of_variant(self, variant: tuple[object, ...]) -> int:
        """Return the launchable offerings of a variant, as a bit mask."""
        return self._listing.where("variant", self.variant)[variant]

    def by_seller(self) -> Mapping[object, int]:
        """Return a bit mask of each provisioner's offerings, in the order they are tried."""
        masks = self._listing.where("seller", lambda index: self.offers[index].provisioner.name)
        names = dict.fromkeys(offer.provisioner.name for offer in self.offers)
        return {name: masks[name] for name in names}

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

    def could_hold(self, signature: NodeConstraints, requests: Resources) -> bool:
        """Return whether some empty node that a signature accepts has room for the requests."""
        accepted = self.accepting(signature)
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
            masks = self._listing.where("size", lambda index: alike[index])
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
            for domain, some in self._listing.by_domain(over).items():
                for launchable in self._listing.of_mask(accepted & some):
                    if launchable.offer not in known:
                        known[launchable.offer] = self.holds(requests, launchable.offer)
                    if known[launchable.offer]:
                        found[domain] = launchable.offering.price_micros_per_hour
                        break
            self._domains[question] = found
        return self._domains[question]
