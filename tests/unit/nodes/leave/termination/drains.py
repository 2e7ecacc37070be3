"""Nodes that are being deleted, and the steps of their drains."""

from datetime import timedelta
from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from tests.builders import NOW, instance, node, provisioner
from tests.unit.worlds import World

DAEMON = ControllerRef(kind="DaemonSet", name="d", uid="d")
HELD = {keys.DO_NOT_EVICT: "true"}


def going(*more: Any, reason: str = "", **changes: Any) -> World:
    """A node that is being deleted, with its machine running and its drain started."""
    annotations = {keys.REMOVAL_REASON: reason} if reason else {}
    fields = {"deletion_at": NOW, "annotations": annotations, **changes}
    world = World(provisioner(), node(**fields), *more)
    world.cloud.add(instance())
    assert Termination(world.ports, None).begin("n1") == "timer started"
    return world


def step(
    world: World, state: Any = None, *, deadline: timedelta | None = None, **more: Any
) -> dict[str, Any]:
    payload = state or world.outbox.timers_of(TimerKind.TERMINATION)[0].payload
    return Termination(world.ports, deadline).step({**payload, **more})
