"""Cordons and marks that timers left behind when they ended by accident."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError
from shared.nodes.leave.replacement import REPLACED
from shared.nodes.leave.stale_marks import remove_stale_marks
from shared.nodes.timers.heartbeats import last_heartbeats, save_heartbeat
from shared.ports import TimerKind
from shared.provisioning.sweep.sweep import Sweep, SweepPolicy
from tests.builders import NOW, node
from tests.unit.worlds import MINUTE, NAME, World

OURS: dict[str, Any] = {"unschedulable": True, "annotations": {keys.REMOVAL_REASON: "emptiness"}}
MARKED: dict[str, Any] = {"annotations": {keys.REPLACES: "old,older"}}


def healed(world: World) -> int:
    nodes, heard = world.cluster.nodes(), last_heartbeats(world.ledger, NAME)
    uids = {node.name: node.uid for node in nodes}
    now = world.clock.now()
    return sum(remove_stale_marks(world.ports, node, uids, heard, now) for node in nodes)


def test_stale_cordon_of_dovetail_is_undone() -> None:
    world = World(node(**OURS))
    save_heartbeat(world.ledger, NAME, "uid-n1", TimerKind.EMPTINESS, world.clock.now())
    assert healed(world) == 0
    world.advance(4 * MINUTE)
    assert healed(world) == 1
    assert not world.node.unschedulable
    assert keys.REMOVAL_REASON not in world.node.annotations


@pytest.mark.parametrize(
    "changes",
    [
        {**OURS, "annotations": {}},
        {**OURS, "annotations": {keys.REMOVAL_REASON: "spot-interruption"}},
        {**OURS, "deletion_at": NOW},
        {**OURS, "finalizers": ()},
    ],
)
def test_other_cordons_stay(changes: dict[str, Any]) -> None:
    world = World(node(**changes))
    assert healed(world) == 0
    assert world.node.unschedulable


def test_the_mark_of_a_replacement_is_removed_when_no_node_is_being_replaced() -> None:
    world = World(node("new", **MARKED), node("old"))
    assert healed(world) == 0
    world.advance(4 * MINUTE)
    save_heartbeat(world.ledger, NAME, "uid-old", TimerKind.REPLACEMENT, world.clock.now())
    assert healed(world) == 0
    world.advance(4 * MINUTE)
    assert healed(world) == 1
    assert keys.REPLACES not in world.cluster.node_values["new"].annotations


def test_a_node_that_is_written_to_is_looked_at_again() -> None:
    world = World(node("new", **MARKED))
    world.advance(4 * MINUTE)
    world.cluster.fail_next("change_node", *[ConflictError("written")] * 4)
    assert healed(world) == 0
    assert healed(world) == 1


def test_that_a_node_was_replaced_is_kept_for_the_budget() -> None:
    world = World()
    save_heartbeat(world.ledger, NAME, "uid-gone", REPLACED, world.clock.now())
    world.advance(timedelta(minutes=8))
    assert world.sweep().stale_timers == 0
    world.advance(timedelta(minutes=3))
    longer = SweepPolicy(window=timedelta(hours=1))
    assert Sweep(world.ports, longer).run().stale_timers == 0
    assert world.sweep().stale_timers == 1
