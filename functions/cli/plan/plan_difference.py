"""How two plans for the same pods differ: cost, nodes and where pods go."""

from collections import Counter
from typing import Final

from msgspec import Struct

from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import PodRef
from shared.model.plan import Plan

NOWHERE: Final = "nothing"


class PlanDifference(Struct, frozen=True, kw_only=True):
    """How a second plan differs from a first.

    Attributes:
        cost_before: Cost of the first plan's new nodes, in micro-dollars per hour.
        nodes: (instance type, zone, capacity type) with how many more (or fewer, negative) of
            them the second plan has; only where it differs, sorted.
        pods: (namespace/name, where it goes first, where it goes second), sorted; a place is an
            existing node, the offering of a new node, or `nothing`.
    """

    cost_before: int
    cost_after: int
    nodes_before: int
    nodes_after: int
    nodes: tuple[tuple[tuple[str, str, str], int], ...]
    pods: tuple[tuple[str, str, str], ...]

    @property
    def cost_micros_per_hour(self) -> int:
        """How much more the second plan costs, negative for less."""
        return self.cost_after - self.cost_before


def compare(before: Plan, after: Plan) -> PlanDifference:
    """Return how the second plan differs from the first."""
    planned = Counter(_kind(node.options[0].offering) for node in after.nodes)
    planned.subtract(_kind(node.options[0].offering) for node in before.nodes)
    first, second = _places(before), _places(after)
    moved = [
        (ref.key, first.get(ref, NOWHERE), second.get(ref, NOWHERE))
        for ref in sorted({*first, *second})
        if first.get(ref, NOWHERE) != second.get(ref, NOWHERE)
    ]
    return PlanDifference(
        cost_before=before.cost_micros_per_hour,
        cost_after=after.cost_micros_per_hour,
        nodes_before=len(before.nodes),
        nodes_after=len(after.nodes),
        nodes=tuple(sorted((kind, count) for kind, count in planned.items() if count)),
        pods=tuple(moved),
    )


def _kind(offering_key: OfferingKey) -> tuple[str, str, str]:
    return offering_key.instance_type, offering_key.zone, offering_key.capacity_type.value


def _places(plan: Plan) -> dict[PodRef, str]:
    found = {}
    for node in plan.nodes:
        place_name = f"new {' '.join(_kind(node.options[0].offering))}"
        found.update(dict.fromkeys(node.pods, place_name))
    found.update({ref: placement.node for placement in plan.placements for ref in placement.pods})
    return found
