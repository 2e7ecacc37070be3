"""How many nodes Cluster Autoscaler adds to node groups: its scale-up, without anything else of it.

Each round it asks for each node group how many of its nodes the waiting pods need, if they went to
nodes of this group alone (first fit, larger pods first), and takes one group: the one whose nodes
would be used best (`least-waste`). What still waits then is seen in the next round. So pods of
several sizes may share nodes, but a round never mixes sizes of nodes.

Source: https://github.com/kubernetes/autoscaler, cluster-autoscaler: estimator/
binpacking_estimator.go and decreasing_pod_orderer.go, core/scaleup/orchestrator/orchestrator.go,
expander/waste/waste.go (2026-11).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PodKind:
    """Pods that are equal.

    Attributes:
        cpu: What one requests, in millicores.
        memory: ... in bytes.
        max_skew: Of a spread over hosts that must hold; None without one.
    """

    name: str
    count: int
    cpu: int
    memory: int
    max_skew: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Machines of one instance type.

    Attributes:
        cpu: For pods, in millicores; likewise memory, in bytes, and pods.
        cpu_capacity: Of the machine, which is what waste is counted in.
        price_micros_per_hour: Of one machine.
    """

    name: str
    cpu: int
    memory: int
    pods: int
    cpu_capacity: int
    memory_capacity: int
    price_micros_per_hour: int


@dataclass(slots=True)
class Node:
    """A node and the pods on it, by kind."""

    group: NodeGroup
    pods: dict[PodKind, int] = field(default_factory=dict)

    def has_room(self, kind: PodKind) -> bool:
        """Return whether the resources suffice for one pod more."""
        on = self.pods.items()
        return (
            sum(count for _, count in on) < self.group.pods
            and sum(one.cpu * count for one, count in on) + kind.cpu <= self.group.cpu
            and sum(one.memory * count for one, count in on) + kind.memory <= self.group.memory
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What stands when the autoscaler has no more options.

    Attributes:
        never_placed: Pods that no node group has a node for, by name of their kind.
    """

    nodes: tuple[Node, ...]
    never_placed: dict[str, int]

    @property
    def price_micros_per_hour(self) -> int:
        """Of all nodes."""
        return sum(node.group.price_micros_per_hour for node in self.nodes)


def scale_up(kinds: Iterable[PodKind], groups: Sequence[NodeGroup]) -> Outcome:
    """Add nodes, round by round, until no group has an option."""
    waiting = {kind: kind.count for kind in kinds}
    nodes: list[Node] = []
    while any(waiting.values()):
        options = [option for group in groups if (option := _estimate(group, waiting, nodes))]
        if not options:
            break
        chosen = min(options, key=_waste)
        nodes += chosen
        for node in chosen:
            for kind, count in node.pods.items():
                waiting[kind] -= count
    left = {kind.name: count for kind, count in waiting.items() if count}
    return Outcome(nodes=tuple(nodes), never_placed=left)


def _estimate(
    group: NodeGroup, waiting: dict[PodKind, int], standing: Sequence[Node]
) -> list[Node]:
    """Return the nodes of a group that the waiting pods need, with the pods on them."""
    new: list[Node] = []

    def score(kind: PodKind) -> float:
        return kind.cpu / group.cpu + kind.memory / group.memory

    for kind in sorted(waiting, key=score, reverse=True):
        for _ in range(waiting[kind]):
            cluster = [*standing, *new]
            place = next((node for node in new if _fits(kind, node, cluster)), None)
            if place is None:
                place = Node(group)
                if not _fits(kind, place, [*cluster, place]):
                    break
                new.append(place)
            place.pods[kind] = place.pods.get(kind, 0) + 1
    return new


def _fits(kind: PodKind, node: Node, cluster: Sequence[Node]) -> bool:
    if not node.has_room(kind):
        return False
    if kind.max_skew is None:
        return True
    fewest = min(other.pods.get(kind, 0) for other in cluster)
    return node.pods.get(kind, 0) + 1 - fewest <= kind.max_skew


def _waste(nodes: Sequence[Node]) -> float:
    """Return the fractions of cpu and memory that the option would leave idle, added up."""
    group = nodes[0].group
    cpu = sum(kind.cpu * count for node in nodes for kind, count in node.pods.items())
    memory = sum(kind.memory * count for node in nodes for kind, count in node.pods.items())
    return (
        2 - cpu / (group.cpu_capacity * len(nodes)) - memory / (group.memory_capacity * len(nodes))
    )
