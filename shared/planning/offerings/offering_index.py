"""What can be launched, looked up by what a pod demands of labels and taints.

Burstable types sustain 5 to 40 % of their vCPUs, and usage beyond that is billed on top, so their
price says nothing about pods that request cpu. They are launched only where a pod or a Provisioner
names types, families or categories, or where nothing else is available. `Exists` and `NotIn` name
none: excluding some types says nothing about the others. Source:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/burstable-performance-instances.html (2026-11).

Special types, bare metal and those with accelerators, are only for pods that need them. They are
sometimes the cheapest, above all on spot. But bare metal takes a quarter of an hour to boot, and
accelerators that a node's pods do not request are missing for pods that do. So a pod gets bare
metal where it or the Provisioner names metal types or sizes, an accelerator where it requests its
resource, and either where nothing else would hold it. `NotIn` and families name none. If a
Provisioner sets minValues, none of its types is special. Source: `ExoticInstanceTypeFilter` of
https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instance/filter/filter.go
(2026-11-27), which leaves them out of a launch. Here they are left out of the plan, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.instance_types.facts import ACCELERATORS
from shared.model import labels as keys
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.packing.problem import NodeType
from shared.planning.offerings.offering_table import Domain, OfferingTable, Options
from shared.planning.rules.existing_nodes import ExistingNode
from shared.planning.rules.labels_and_taints import UNKNOWN_HOST, taints_tolerated
from shared.planning.rules.min_values import missing_values
from shared.planning.rules.node_constraints import NodeConstraints, ports_taken

_BURSTABLE: Final = "t"
_METAL: Final = "metal"
_NAMING: Final = (keys.INSTANCE_TYPE, keys.INSTANCE_FAMILY, keys.INSTANCE_CATEGORY)
_NAMING_METAL: Final = (keys.INSTANCE_TYPE, keys.INSTANCE_SIZE)


class OfferingIndex:
    """The launchable offerings of a table, and the existing nodes, by node constraints.

    All other state is caches for one decision: after `leave_out_special`, the same query always has
    the same answer.

    Attributes:
        table: What can be launched.
        existing_nodes: Nodes that exist or are in flight.
        within_limits: Bit mask of the offerings of Provisioners whose limits allow at least one
            instance type.
        left_out: Bit mask of the offerings of special types that no pod of the decision needs.
    """

    def __init__(
        self,
        table: OfferingTable,
        existing_nodes: Sequence[ExistingNode],
        at_limit: Iterable[str] = (),
    ) -> None:
        """Create an index with empty caches; Provisioners `at_limit` may not launch instances."""
        self.table = table
        self.existing_nodes = tuple(existing_nodes)
        self.within_limits = table.all
        for name in at_limit:
            self.within_limits &= ~table.by_provisioner().get(name, 0)
        self._interned: dict[NodeConstraints, NodeConstraints] = {}
        # Bit masks over the table's offerings; that of `_existing_accepting` is over existing
        # nodes.
        self.left_out = 0
        self._special = {
            why: some for why, some in table.where("special", self._why_special).items() if any(why)
        }
        self._by_requirement: dict[Requirement, int] = {}
        self._burstable_left_out: int | None = None
        self._accepted: dict[NodeConstraints, int] = {}
        self._existing_accepting: dict[NodeConstraints, int] = {}
        self._provisioners: dict[NodeConstraints, frozenset[str]] = {}
        self._domains: dict[
            tuple[NodeConstraints, tuple[str, ...], Resources, int], dict[Domain, int]
        ] = {}

    def accepting(self, node_constraints: NodeConstraints) -> int:
        """Return a bit mask of the launchable offerings that node constraints accept.

        Burstable types are left out if others remain, unless the node constraints or the
        Provisioner name them, and so are special types that no pod of the decision needs.
        """
        mask = self._compatible(node_constraints)
        return mask & ~self.left_out or mask

    def suited(
        self,
        node_constraints_list: Iterable[NodeConstraints],
        requests: Resources,
        topology_keys: tuple[str, ...],
    ) -> int:
        """Return a bit mask of the launchable offerings that suit pods of any node constraints.

        Args:
            requests: Of one pod.
            topology_keys: Topology keys of the decision.
        """
        if not self._special:
            return self.table.all
        found = 0
        for node_constraints in node_constraints_list:
            found |= self._suited(node_constraints, requests, topology_keys)
        return found

    def _suited(
        self,
        node_constraints: NodeConstraints,
        requests: Resources,
        topology_keys: tuple[str, ...],
    ) -> int:
        """Return what suits pods of these node constraints.

        In a domain where nothing else holds the pod, special types suit it.
        """
        accepted = self._compatible(node_constraints)
        names_metal = any(map(_names_metal, node_constraints.terms))
        special = 0
        for (metal, accelerators), some in self._special.items():
            unasked = accelerators and not any(requests[name] for name in accelerators)
            if unasked or (metal and not names_metal):
                special |= some & accepted
        found, holding = accepted & ~special, self.table.holding(requests)
        for own in self.table.by_provisioner().values() if special else ():
            for there in self.table.by_domain(topology_keys).values():
                alike = own & there
                only = special & alike
                if only and not holding & found & alike:
                    found |= only if holding & only else 0
        return found

    def _why_special(self, index: int) -> tuple[bool, tuple[str, ...]]:
        """Return whether an offer is bare metal that is not named, and its accelerators."""
        offer = self.table.offers[index]
        if offer.provisioner.least_values:
            return False, ()
        capacity, size = offer.instance_type.capacity, offer.labels.get(keys.INSTANCE_SIZE, "")
        return (
            _METAL in size and not _names_metal(offer.provisioner.requirements),
            tuple(name for name in ACCELERATORS if capacity[name]),
        )

    def leave_out_special(self, suited: Iterable[int]) -> None:
        """Exclude special types that no pod of the decision needs; call it before any other query.

        A type that one pod needs stays open to all: a pod may fill up a node launched for another.
        """
        self.left_out = 0
        for some in self._special.values():
            self.left_out |= some
        for some in suited:
            self.left_out &= ~some

    def _compatible(self, node_constraints: NodeConstraints) -> int:
        if node_constraints not in self._accepted:
            table, mask = self.table, 0
            for term in node_constraints.terms:
                mask |= self._allowing(term)
            for taints, some in table.by_taints().items():
                if not taints_tolerated(
                    taints, node_constraints.tolerations, strict=node_constraints.strict
                ):
                    mask &= ~some
            if node_constraints.ports:
                for ports, some in table.by_ports().items():
                    if ports_taken(node_constraints.ports, ports):
                        mask &= ~some
            if not any(map(_names_types, node_constraints.terms)):
                mask = mask & ~self._unnamed_burstable() or mask
            self._accepted[node_constraints] = mask
        return self._accepted[node_constraints]

    def unasked(self, node_constraints: NodeConstraints) -> int:
        """Return a bit mask of the types that are launched only where named or needed.

        These are burstable types, if neither the node constraints nor the Provisioner name types,
        and special types that no pod of the decision needs.
        """
        named = any(map(_names_types, node_constraints.terms))
        return self.left_out | (0 if named else self._unnamed_burstable())

    def _unnamed_burstable(self) -> int:
        """Return burstable offerings of Provisioners that name no types and offer enough others."""
        if self._burstable_left_out is None:
            table, self._burstable_left_out = self.table, 0
            burstable = table.labelled(keys.INSTANCE_CATEGORY, _BURSTABLE)
            if burstable:
                names = table.where(
                    "names types",
                    lambda index: _names_types(table.offers[index].provisioner.requirements),
                )
                burstable &= names.get(False, 0)
            for own in table.by_provisioner().values() if burstable else ():
                if self._is_enough(own & ~burstable):
                    self._burstable_left_out |= own & burstable
        return self._burstable_left_out

    def _is_enough(self, some: int) -> bool:
        """Return whether these offerings of one Provisioner meet its minValues."""
        first = next(iter(self.table.of_mask(some)), None)
        if first is None:
            return False
        least = self.table.offers[first.offer].provisioner.least_values
        return not least or not missing_values(
            least, map(self.table.labels, self.table.of_mask(some))
        )

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
        if requirement not in self._by_requirement:
            mask = 0
            if requirement.key == keys.HOSTNAME:
                mask = self.table.all if requirement.allows(UNKNOWN_HOST) else 0
            else:
                for value, some in self.table.by_label(requirement.key).items():
                    if requirement.allows(value):
                        mask |= some
            self._by_requirement[requirement] = mask
        return self._by_requirement[requirement]

    def node_types(
        self, node_constraints_list: Iterable[NodeConstraints], pseudo_capacity: Resources
    ) -> tuple[tuple[NodeType, ...], tuple[Options, ...], tuple[int, ...]]:
        """Return what any of the node constraints accepts, as `OfferingTable.node_types` does."""
        return self.table.node_types(
            tuple(map(self.accepting, node_constraints_list)), pseudo_capacity
        )

    def existing_accepting(self, node_constraints: NodeConstraints) -> int:
        """Return a bit mask of the existing nodes that node constraints accept."""
        if node_constraints not in self._existing_accepting:
            mask = 0
            for index, existing in enumerate(self.existing_nodes):
                if node_constraints.accepts(existing.labels, existing.taints):
                    mask |= 1 << index
            self._existing_accepting[node_constraints] = mask
        return self._existing_accepting[node_constraints]

    def provisioners_for(self, node_constraints: NodeConstraints) -> frozenset[str]:
        """Return the Provisioners with any offering that node constraints accept."""
        if node_constraints not in self._provisioners:
            accepted = self.accepting(node_constraints)
            self._provisioners[node_constraints] = frozenset(
                name for name, own in self.table.by_provisioner().items() if own & accepted
            )
        return self._provisioners[node_constraints]

    def first_provisioner(self, node_constraints: NodeConstraints, requests: Resources) -> str:
        """Return the first Provisioner whose empty nodes could hold the requests, "" for none."""
        owners = self.table.by_provisioner().items()
        able = (name for name, own in owners if self.could_hold(node_constraints, requests, own))
        return next(able, "")

    def intern(self, node_constraints: NodeConstraints) -> NodeConstraints:
        """Return one object for equal node constraints, so that comparing them is fast."""
        return self._interned.setdefault(node_constraints, node_constraints)

    def could_hold(
        self, node_constraints: NodeConstraints, requests: Resources, among: int = -1
    ) -> bool:
        """Return whether some empty node that node constraints accept has room for the requests.

        Args:
            among: Bit mask of the launchable offerings to consider; -1 for all.
        """
        return bool(self.accepting(node_constraints) & among & self.table.holding(requests))

    def domains(
        self,
        node_constraints: NodeConstraints,
        topology_keys: tuple[str, ...],
        requests: Resources,
        among: int = -1,
    ) -> Mapping[Domain, int]:
        """Return the domains that new nodes for such a pod could be in, each with its lowest price.

        Args:
            among: Bit mask of the launchable offerings to consider; -1 for all.
        """
        question = (node_constraints, topology_keys, requests, among)
        if question not in self._domains:
            able = self.accepting(node_constraints) & among & self.table.holding(requests)
            self._domains[question] = {
                domain: self.table.cheapest(able & some).offering.price_micros_per_hour
                for domain, some in self.table.by_domain(topology_keys).items()
                if able & some
            }
        return self._domains[question]


def _names_types(requirements: Requirements) -> bool:
    return any(item.key in _NAMING and not item.complement for item in requirements)


def _names_metal(requirements: Requirements) -> bool:
    return any(
        item.key in _NAMING_METAL
        and not item.complement
        and any(_METAL in value for value in item.values)
        for item in requirements
    )
