"""Special types, bare metal and those with accelerators, are only for pods that need them.

They are sometimes the cheapest, above all on spot. But bare metal takes a quarter of an hour to
boot, and accelerators that a node's pods do not request are missing for pods that do. So a pod gets
bare metal where it or the Provisioner names metal types or sizes, an accelerator where it requests
its resource, and either where nothing else would hold it. `NotIn` and families name none. If a
Provisioner sets minValues, none of its types is special.

Source: `ExoticInstanceTypeFilter` of
https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instance/filter/filter.go
(2026-11-27), which leaves them out of a launch. Here they are left out of the plan, too.
"""

from typing import Final

from shared.instance_types.facts import ACCELERATORS
from shared.model import labels as keys
from shared.model.requirements import Requirements
from shared.model.resources import Resources
from shared.planning.offerings.offering_table import OfferingTable
from shared.planning.rules.node_constraints import NodeConstraints

_METAL: Final = "metal"
_NAMING: Final = (keys.INSTANCE_TYPE, keys.INSTANCE_SIZE)


class SpecialTypes:
    """The special types of a table, and which pods they are for.

    Attributes:
        all: Bit mask of their offerings.
    """

    def __init__(self, table: OfferingTable) -> None:
        """Index the special types of the table."""
        self._table = table
        self._groups = [
            (*group, some)
            for group, some in table.where("special", self._special_properties).items()
            if any(group)
        ]
        self.all = 0
        for _, _, some in self._groups:
            self.all |= some

    def _special_properties(self, index: int) -> tuple[bool, tuple[str, ...]]:
        """Return whether an offer is bare metal that is not named, and its accelerators."""
        offer = self._table.offers[index]
        if offer.provisioner.least_values:
            return False, ()
        capacity, size = offer.instance_type.capacity, offer.labels.get(keys.INSTANCE_SIZE, "")
        return (
            _METAL in size and not _names_metal(offer.provisioner.requirements),
            tuple(name for name in ACCELERATORS if capacity[name]),
        )

    def suited(
        self,
        node_constraints: NodeConstraints,
        accepted: int,
        requests: Resources,
        topology_keys: tuple[str, ...],
    ) -> int:
        """Return a bit mask of the accepted offerings that suit pods of these node constraints.

        Args:
            accepted: Bit mask of the offerings that the node constraints accept.
            requests: Of one pod.
            topology_keys: Topology keys of the decision: in a domain where nothing else holds the
                pod, special types suit it.
        """
        names_metal = any(map(_names_metal, node_constraints.terms))
        special = 0
        for metal, accelerators, some in self._groups:
            unasked = accelerators and not any(requests[name] for name in accelerators)
            if unasked or (metal and not names_metal):
                special |= some & accepted
        found = accepted & ~special
        for own in self._table.by_provisioner().values() if special else ():
            for there in self._table.by_domain(topology_keys).values():
                alike = own & there
                only = special & alike
                if only and not self._any_holds(requests, found & alike):
                    found |= only if self._any_holds(requests, only) else 0
        return found

    def _any_holds(self, requests: Resources, among: int) -> bool:
        table = self._table
        return any(some & among and table.holds(requests, offer) for offer, some in table.by_size())


def _names_metal(requirements: Requirements) -> bool:
    return any(
        item.key in _NAMING
        and not item.complement
        and any(_METAL in value for value in item.values)
        for item in requirements
    )
