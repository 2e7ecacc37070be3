"""Empty nodes, and the steps of their timers."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.ports import TimerKind
from tests.builders import node, provisioner
from tests.unit.worlds import SECOND, World

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
