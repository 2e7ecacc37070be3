"""What a side answers: machines, and the pods on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.model.ec2.instance_types import CapacityType, OfferingKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine that is asked for.

    Attributes:
        options: Any of these may be launched; the first is the one that it is taken to be.
        price_micros_per_hour: Of the first.
        pods: Their names.
    """

    options: tuple[OfferingKey, ...]
    price_micros_per_hour: int
    pods: tuple[str, ...]

    @property
    def zone(self) -> str:
        """The zone of all options, empty if they are in several."""
        zones = {option.zone for option in self.options}
        return zones.pop() if len(zones) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one side makes of a problem.

    Attributes:
        left_out: Names of pods that it has no place for.
        cpu_millis: CPU time of the decision.
        bound_micros_per_hour: What it proves that no plan can cost less than; 0 if it proves none.
        bound_millis: CPU time of that, after the decision.
    """

    machines: tuple[Machine, ...]
    left_out: tuple[str, ...] = ()
    cpu_millis: float = 0
    bound_micros_per_hour: int = 0
    bound_millis: float = 0

    @property
    def price_micros_per_hour(self) -> int:
        """Of all machines."""
        return sum(machine.price_micros_per_hour for machine in self.machines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of the nodes.

    Attributes:
        moved: Pods that ran on other nodes before.
        price_micros_per_hour: Of all nodes afterwards.
    """

    moved: int
    price_micros_per_hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """What one side's consolidation makes of running nodes.

    Attributes:
        answer: The machines at the end; its CPU time is that of all decisions.
        changes: In their order.
    """

    answer: Answer
    changes: tuple[Change, ...]

    @property
    def moved(self) -> int:
        """How often a pod was moved."""
        return sum(change.moved for change in self.changes)

    def moved_until(self, price_micros_per_hour: int) -> int | None:
        """Return how often until this price was reached; None if it never was."""
        moved = 0
        for change in self.changes:
            moved += change.moved
            if change.price_micros_per_hour <= price_micros_per_hour:
                return moved
        return None


def read_machines(nodes: Sequence[Mapping[str, Any]]) -> tuple[Machine, ...]:
    """Return the machines of the Go program's nodes."""
    return tuple(
        Machine(
            options=tuple(
                OfferingKey(
                    instance_type=option["instanceType"],
                    zone=option["zone"],
                    capacity_type=CapacityType(option["capacityType"]),
                )
                for option in node["options"]
            ),
            price_micros_per_hour=node["options"][0]["priceMicros"],
            pods=tuple(node["pods"]),
        )
        for node in nodes
    )
