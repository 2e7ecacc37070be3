"""What the cases about nodes share: a world with one node, and its timers."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.join.registration import Registration
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.expiration_timer import Expiration
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from tests.builders import NOT_READY, instance, node, pod, provisioner
from tests.unit.worlds import NAME, World

STARTING: dict[str, Any] = {"ready": None, "allocatable": Resources(), "taints": (NOT_READY,)}


def standing(*more: Any, owner: Any = None, **changes: Any) -> World:
    """Return a world with one initialized Dovetail node whose machine runs."""
    labels = {**node().labels, keys.INITIALIZED: "true", **changes.pop("labels", {})}
    world = World(owner or provisioner(), node(labels=labels, **changes), *more)
    world.cloud.add(instance())
    return world


def going(*more: Any, reason: str = "", **changes: Any) -> World:
    """The same, being deleted and drained."""
    world = standing(*more, **changes)
    if reason:
        remove_node(world.ports, world.cluster.node_values["n1"], reason)
    else:
        world.cluster.delete_node(world.cluster.node_values["n1"])
        Termination(world.ports, None).begin("n1")
    return world


def drain(world: World, state: Any = None) -> dict[str, Any]:
    """Take a step of the first drain."""
    payload = state or world.outbox.timers_of(TimerKind.TERMINATION)[0].payload
    return Termination(world.ports, None).step(payload)


def empty_step(world: World) -> dict[str, Any]:
    return Emptiness(world.ports).step(world.outbox.timers_of(TimerKind.EMPTINESS)[-1].payload)


def age_step(world: World) -> dict[str, Any]:
    return Expiration(world.ports).step(state_of(world))


def register_step(world: World) -> dict[str, Any]:
    return Registration(world.ports).step(state_of(world))


def state_of(world: World) -> dict[str, Any]:
    return {"cluster": NAME, "node": world.node.name, "uid": world.node.uid, "since": ""}


def launched(*, owner: Any = None, **changes: Any) -> World:
    """A node that was launched for one pod which is bound when it is ready."""
    world = World(owner or provisioner(), pod(tolerations=(), **changes))
    world.provision()
    return world


def says_first(world: World, **changes: Any) -> Node:
    """Let the kubelet of the launched machine make its Node before we do."""
    (one,) = world.alive
    fields: dict[str, Any] = {"uid": "own", "resource_version": "7", **changes}
    world.cluster.add(Node(name=one.private_dns_name, **fields))
    return world.cluster.node_values[one.private_dns_name]


def changed(world: World, **changes: Any) -> Node:
    """Change the only node as another client would."""
    world.cluster.add(replace(world.node, resource_version="", **changes))
    return world.node


def reasons(world: World) -> set[str]:
    return {kube_event.reason for kube_event in world.cluster.kube_events}
