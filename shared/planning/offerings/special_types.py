"""Special types, bare metal and those with accelerators, are for pods that need them.

Their price at times is the least, above all on spot, but metal boots for a quarter of an hour, and
accelerators that no pod asks for keep pods waiting that do. So a pod gets metal where it or the
Provisioner names metal types or sizes, an accelerator where it asks for its resource, and either
where nothing else would hold it. `NotIn` and families name none. Where a Provisioner asks for least
values, all of its types count.

Source: `ExoticInstanceTypeFilter` of
https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instance/filter/filter.go
(2026-11-27), which leaves them out of a launch. Here they are left out of the plan, too.
"""

from typing import Final

from shared.catalog.facts import ACCELERATORS
from shared.model import labels as keys
from shared.model.requirements import Requirements
from shared.model.resources import Resources
from shared.planning.offerings.offering_table import OfferingTable
from shared.scheduling.node_constraints import NodeConstraints

_METAL: Final = "metal"
_NAMING: Final = (keys.INSTANCE_TYPE, keys.INSTANCE_SIZE)


class SpecialTypes:
    """The special types of a table, and which pods they are for.

    Attributes:
        all: Bit mask of their offerings.
    """

    def __init__(self, table: OfferingTable) -> None:
        """Find them."""
        self._table = table
        self._kinds = [
            (*kind, some) for kind, some in table.where("special", self._kind).items() if any(kind)
        ]
        self.all = 0
        for _, _, some in self._kinds:
            self.all |= some

    def _kind(self, index: int) -> tuple[bool, tuple[str, ...]]:
        """Return whether an offer is of metal that is not named, and its accelerators."""
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
        signature: NodeConstraints,
        accepted: int,
        requests: Resources,
        over: tuple[str, ...],
    ) -> int:
        """Return which of the offerings that a signature accepts are for its pods, as a bit mask.

        Args:
            accepted: These offerings.
            requests: Of one pod.
            over: Topology keys: where nothing else is to be had in one of their domains, special
                types are.
        """
        names_metal = any(map(_names_metal, signature.terms))
        special = 0
        for metal, accelerators, some in self._kinds:
            unasked = accelerators and not any(requests[name] for name in accelerators)
            if unasked or (metal and not names_metal):
                special |= some & accepted
        found = accepted & ~special
        for own in self._table.by_seller().values() if special else ():
            for there in self._table.by_domain(over).values():
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
