"""A node that goes away between two calls of a timer's step is no failure."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model.kubernetes.nodes import Node
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from tests.builders import NOW, node, provisioner
from tests.unit.worlds import SECOND, World, instead


def vanishing(world: World) -> World:
    """Delete the node just before the next change of it."""
    change = world.cluster.change_node

    def gone(other_node: Node, wanted: Any) -> Node:
        world.cluster.node_values.pop(other_node.name, None)
        return change(other_node, wanted)

    instead(world.cluster, "change_node", gone)
    return world


def test_empty_node_that_vanishes_is_read_again_and_then_ignored() -> None:
    world = World(provisioner(ttl_after_empty=30 * SECOND), node())
    emptying = Emptiness(world.ports)
    emptying.begin("n1")
    state = world.outbox.timers_of(TimerKind.EMPTINESS)[-1].payload
    vanishing(world).advance(31 * SECOND)
    state = emptying.step(state)
    assert (state["next"], state["wait_seconds"]) == ("wait", 1)
    state = emptying.step(state)
    assert (state["next"], state["result"]) == ("done", "gone")


def test_machine_of_a_draining_node_that_was_deleted_is_terminated() -> None:
    world = World(provisioner(), node(deletion_at=NOW))
    terminating = Termination(world.ports, None)
    assert terminating.begin("n1") == "timer started"
    state = world.outbox.timers_of(TimerKind.TERMINATION)[-1].payload
    vanishing(world)
    for _ in range(4):
        state = terminating.step(state)
        world.advance(timedelta(seconds=2))
    assert state["next"] == "done"
    assert not world.cluster.node_values


@pytest.mark.parametrize("reason", ["emptiness", "expiration"])
def test_removing_a_node_that_is_gone_says_look_again(reason: str) -> None:
    world = vanishing(World(provisioner(), node()))
    assert remove_node(world.ports, world.node, reason) is False
