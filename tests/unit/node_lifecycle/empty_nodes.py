"""Empty nodes, and the steps of their timers."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.node_lifecycle.emptiness import Emptiness
from shared.ports import NodeChange, TimerKind
from tests.builders import node, pod, provisioner
from tests.unit.worlds import SECOND, World, instead

TTL = 30 * SECOND


def empty_world(*more: Pod, **changes: Any) -> World:
    return World(provisioner(ttl_after_empty=TTL), node(**changes), *more)


def begin(world: World) -> str:
    return Emptiness(world.ports).begin("n1")


def step(world: World, state: Any = None) -> dict[str, Any]:
    return Emptiness(world.ports).step(
        state or world.outbox.timers_of(TimerKind.EMPTINESS)[-1].payload
    )


def stamp_of(other_node: Node) -> str | None:
    return other_node.annotations.get(keys.EMPTINESS_TIMESTAMP)


def moving_in(world: World) -> None:
    """Let a pod be bound while the node is being cordoned."""
    original = world.cluster.change_node

    def change_node(other_node: Node, change: NodeChange) -> Node:
        if change.unschedulable:
            world.cluster.add(pod(node_name="n1"))
        return original(other_node, change)

    instead(world.cluster, "change_node", change_node)
