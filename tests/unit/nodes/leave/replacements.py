"""A cluster with a node that is worth replacing, and steps of its replacement."""

from datetime import timedelta
from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.nodes.leave.replacement import Replacement
from shared.ports import TimerKind
from tests.builders import SHAPES, node_of, pod, provisioner
from tests.unit.worlds import World

HOUR = timedelta(hours=1)


def half_empty() -> World:
    """Return a cluster whose one big machine holds what a small one could."""
    world = World(
        provisioner(consolidation=True),
        node_of("big", "m5.2xlarge"),
        pod("a", node_name="big"),
        pod("b", node_name="big"),
    )
    world.advance(HOUR)
    return world


def state_of(world: World) -> dict[str, Any]:
    (timer,) = world.outbox.timers_of(TimerKind.REPLACEMENT)
    return dict(timer.payload)


def step(world: World, state: dict[str, Any]) -> dict[str, Any]:
    return Replacement(world.ports).step(state)


def joined(world: World, **changes: Any) -> Node:
    """Let the new node's kubelet speak, and bind complete it."""
    (fresh,) = (other_node for other_node in world.cluster.nodes() if other_node.name != "big")
    shape = SHAPES[fresh.labels[keys.INSTANCE_TYPE]]
    room = {"capacity": shape.capacity, "allocatable": shape.allocatable}
    world.kubelet_joins(fresh.name, **{**room, **changes})
    world.bind(fresh.name)
    return world.cluster.node_values[fresh.name]


def expired(**overrides: Any) -> World:
    world = World(
        provisioner(ttl_until_expired=HOUR),
        node_of("big", "m5.2xlarge", **overrides),
        pod("a", node_name="big", cpu=1000),
    )
    world.advance(HOUR)
    return world
