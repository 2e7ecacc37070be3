"""What can be bought, asked by what a pod demands of labels and taints.

Burstable types sustain a part of their vCPUs, 5 to 40 %, and what a load takes beyond that is
billed on top, so their price says nothing about pods that ask for cpu: they are bought where a pod
or a Provisioner names types, families or categories, or where nothing else is to be had. `Exists`
and `NotIn` name none: who leaves out some machines says nothing about the others. Source:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/burstable-performance-instances.html (2026-11).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.packing.problem import Shape
from shared.planning.offerings.offering_table import Domain, OfferingTable, Ways
from shared.planning.offerings.special_types import SpecialTypes
from shared.scheduling.compatibility import UNKNOWN_HOST, tolerated
from shared.scheduling.existing_nodes import ExistingNode
from shared.scheduling.flexibility import too_few
from shared.scheduling.node_constraints import NodeConstraints, ports_taken

_BURSTABLE: Final = "t"
_NAMING: Final = (keys.INSTANCE_TYPE, keys.INSTANCE_FAMILY, keys.INSTANCE_CATEGORY)


class OfferingIndex:
    """The launchable offerings of a table, and the nodes that are there, by node constraints.

    Its only state besides is caches, of one decision: the same question has the same answer, from
    the time that it is known which special types are for its pods.

    Attributes:
        table: What can be bought.
        rooms: Nodes that are there or on their way.
        allowed: The offerings of provisioners whose limits have room for any machine, as a bit
            mask.
    """

    def __init__(
        self, table: OfferingTable, rooms: Sequence[ExistingNode], sold_out: Iterable[str] = ()
    ) -> None:
        """Start without answers; limits leave no room for any machine of `sold_out` ones."""
        self.table = table
        self.rooms = tuple(rooms)
        self.allowed = table.all
        for name in sold_out:
            self.allowed &= ~table.by_seller().get(name, 0)
        self._special = SpecialTypes(table)
        self._interned: dict[NodeConstraints, NodeConstraints] = {}
        # Bit masks over the table's offerings, and one over the rooms.
        self._left_out = 0
        self._allowed: dict[Requirement, int] = {}
        self._unnamed: int | None = None
        self._accepted: dict[NodeConstraints, int] = {}
        self._open: dict[NodeConstraints, int] = {}
        self._sellers: dict[NodeConstraints, frozenset[str]] = {}
        self._domains: dict[
            tuple[NodeConstraints, tuple[str, ...], Resources, int], dict[Domain, int]
        ] = {}

    def accepting(self, signature: NodeConstraints) -> int:
        """Return the launchable offerings that a signature accepts, as a bit mask.

        Burstable ones that neither it nor their provisioner names are left out if others remain,
        and so are special types that none of the decision's pods needs.
        """
        mask = self._compatible(signature)
        return mask & ~self._left_out or mask

    def suited(
        self, signatures: Iterable[NodeConstraints], requests: Resources, over: tuple[str, ...]
    ) -> int:
        """Return the launchable offerings that are for pods of any signature, as a bit mask.

        Args:
            requests: Of one pod.
            over: Topology keys of the decision.
        """
        if not self._special.all:
            return self.table.all
        found = 0
        for signature in signatures:
            accepted = self._compatible(signature)
            found |= self._special.suited(signature, accepted, requests, over)
        return found

    def leave_out_special(self, suited: Iterable[int]) -> None:
        """Leave out special types that are for none of some pods; asked before any other question.

        What is for one of them is open to all: a pod may fill up a node that is bought for another.
        """
        self._left_out = self._special.all
        for some in suited:
            self._left_out &= ~some

    def _compatible(self, signature: NodeConstraints) -> int:
        if signature not in self._accepted:
            table, mask = self.table, 0
            for term in signature.terms:
                mask |= self._allowing(term)
            for taints, some in table.by_taints().items():
                if not tolerated(taints, signature.tolerations, strict=signature.strict):
                    mask &= ~some
            if signature.ports:
                for ports, some in table.by_ports().items():
                    if ports_taken(signature.ports, ports):
                        mask &= ~some
            if not any(map(_names_types, signature.terms)):
                mask = mask & ~self._unnamed_burstable() or mask
            self._accepted[signature] = mask
        return self._accepted[signature]

    def _unnamed_burstable(self) -> int:
        """Return burstable offerings of provisioners that name no types and have enough else."""
        if self._unnamed is None:
            table, self._unnamed = self.table, 0
            burstable = table.labelled(keys.INSTANCE_CATEGORY, _BURSTABLE)
            if burstable:
                names = table.where(
                    "names types",
                    lambda index: _names_types(table.offers[index].provisioner.requirements),
                )
                burstable &= names.get(False, 0)
            for own in table.by_seller().values() if burstable else ():
                if self._is_enough(own & ~burstable):
                    self._unnamed |= own & burstable
        return self._unnamed

    def _is_enough(self, some: int) -> bool:
        """Return whether some offerings of one provisioner give it the choice it asks for."""
        first = next(iter(self.table.of_mask(some)), None)
        if first is None:
            return False
        least = self.table.offers[first.offer].provisioner.least_values
        return not least or not too_few(least, map(self.table.labels, self.table.of_mask(some)))

    def _allowing(self, term: Requirements) -> int:
        table, mask = self.table, self.table.all
        undecided = table.undecided()
        for requirement in term:
            mask &= self._allowed_by(requirement)
            # A term about a label whose value is still open needs a pick of that value.
            for open_keys, some in undecided.items():
                if requirement.key in open_keys:
                    mask &= ~some
        return mask

    def _allowed_by(self, requirement: Requirement) -> int:
        if requirement not in self._allowed:
            mask = 0
            if requirement.key == keys.HOSTNAME:
                mask = self.table.all if requirement.allows(UNKNOWN_HOST) else 0
            else:
                for value, some in self.table.by_label(requirement.key).items():
                    if requirement.allows(value):
                        mask |= some
            self._allowed[requirement] = mask
        return self._allowed[requirement]

    def shapes(
        self, signatures: Iterable[NodeConstraints], slots: Resources
    ) -> tuple[tuple[Shape, ...], tuple[Ways, ...], tuple[int, ...]]:
        """Return the shapes that any of some signatures accepts, as `OfferingTable.shapes` does."""
        return self.table.shapes(tuple(map(self.accepting, signatures)), slots)

    def rooms_accepting(self, signature: NodeConstraints) -> int:
        """Return the rooms that a signature accepts, as a bit mask."""
        if signature not in self._open:
            mask = 0
            for index, room in enumerate(self.rooms):
                if signature.accepts(room.labels, room.taints):
                    mask |= 1 << index
            self._open[signature] = mask
        return self._open[signature]

    def sellers(self, signature: NodeConstraints) -> frozenset[str]:
        """Return the provisioners with anything that a signature accepts."""
        if signature not in self._sellers:
            accepted = self.accepting(signature)
            self._sellers[signature] = frozenset(
                name for name, own in self.table.by_seller().items() if own & accepted
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
            some & accepted and self.table.holds(requests, offer)
            for offer, some in self.table.by_size()
        )

    def domains(
        self,
        signature: NodeConstraints,
        over: tuple[str, ...],
        requests: Resources,
        among: int = -1,
    ) -> Mapping[Domain, int]:
        """Return where new nodes for such a pod could be, each with the cheapest price there.

        Args:
            among: A bit mask of the launchable offerings to be looked at; -1 for all.
        """
        question = (signature, over, requests, among)
        if question not in self._domains:
            accepted = self.accepting(signature) & among
            known: dict[int, bool] = {}
            found: dict[Domain, int] = {}
            for domain, some in self.table.by_domain(over).items():
                for launchable in self.table.of_mask(accepted & some):
                    if launchable.offer not in known:
                        known[launchable.offer] = self.table.holds(requests, launchable.offer)
                    if known[launchable.offer]:
                        found[domain] = launchable.offering.price_micros_per_hour
                        break
            self._domains[question] = found
        return self._domains[question]


def _names_types(requirements: Requirements) -> bool:
    return any(item.key in _NAMING and not item.complement for item in requirements)
