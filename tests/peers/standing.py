"""A cluster with nodes, for Dovetail's side: what was launched, and the pods that run there."""

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from operator import attrgetter
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import PodRef
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests.builders import node_of
from tests.peers.answers import Machine
from tests.peers.problems import Problem

# Longer than a node is left alone after it was launched.
_AGE: Final = timedelta(minutes=30)


class Standing:
    """Nodes that are ready as soon as they are asked for, of the cheapest option each."""

    def __init__(self, problem: Problem) -> None:
        """Begin without nodes; no pod has arrived."""
        whole = problem.snapshot()
        self._empty = replace(
            whole,
            pending=(),
            provisioners=tuple(replace(pool, consolidation=True) for pool in whole.provisioners),
        )
        self._pods = {pod.name: pod for pod in whole.pending}
        self._types = {entry.name: entry for entry in whole.instance_types}
        self._nodes: dict[str, Node] = {}
        self._bought: dict[str, tuple[OfferingKey, int]] = {}
        self._bound: dict[str, Pod] = {}
        self._launched = 0

    @property
    def price_micros_per_hour(self) -> int:
        """Of all nodes."""
        return sum(price for _, price in self._bought.values())

    def machines(self) -> tuple[Machine, ...]:
        """Return the machines in the order in which they were launched."""
        on: dict[str, list[str]] = {name: [] for name in self._nodes}
        for pod in self._bound.values():
            on[pod.node_name].append(pod.name)
        return tuple(
            Machine(options=(offering,), price_micros_per_hour=price, pods=tuple(on[name]))
            for name, (offering, price) in self._bought.items()
        )

    def snapshot(self, arrived: Iterable[str] = ()) -> ClusterSnapshot:
        """Return the cluster as it is when these pods have just arrived."""
        return replace(
            self._empty,
            pending=tuple(sorted((self._pods[name] for name in arrived), key=attrgetter("key"))),
            bound=tuple(sorted(self._bound.values(), key=attrgetter("key"))),
            nodes=tuple(self._nodes.values()),
        )

    def start(self, machine: Machine) -> None:
        """Launch a machine that was planned elsewhere, and run its pods."""
        name = self._launch(machine.options[0], machine.price_micros_per_hour)
        self._place(machine.pods, name)

    def carry_out(self, plan: Plan, remove: Collection[str] = ()) -> int:
        """Launch, bind and terminate; return how many pods ran elsewhere before.

        Raises:
            AssertionError: A pod of a terminated node has no other.
        """
        moved = 0
        for placement in plan.placements:
            moved += self._place(_names(placement.pods), placement.node)
        for planned in plan.nodes:
            cheapest = planned.options[0]
            name = self._launch(cheapest.offering, cheapest.price_micros_per_hour)
            moved += self._place(_names(planned.pods), name)
        for name in remove:
            del self._nodes[name], self._bought[name]
        left = [pod.name for pod in self._bound.values() if pod.node_name not in self._nodes]
        assert not left, f"on terminated nodes: {left}"
        return moved

    def _launch(self, offering: OfferingKey, price: int) -> str:
        self._launched += 1
        name = f"node-{self._launched:06}"
        labels: Mapping[str, str] = {
            **self._types[offering.instance_type].labels,
            keys.ZONE: offering.zone,
            keys.CAPACITY_TYPE: offering.capacity_type.value,
            keys.INITIALIZED: "true",
        }
        self._nodes[name] = node_of(
            name,
            self._types[offering.instance_type],
            labels=labels,
            created_at=self._empty.taken_at - _AGE,
        )
        self._bought[name] = (offering, price)
        return name

    def _place(self, pods: Iterable[str], name: str) -> int:
        moved = 0
        for pod in pods:
            moved += pod in self._bound
            running = replace(self._pods[pod], node_name=name, phase="Running", unschedulable=False)
            self._bound[pod] = running
        return moved


def _names(refs: Iterable[PodRef]) -> Iterable[str]:
    return (ref.name for ref in refs)
