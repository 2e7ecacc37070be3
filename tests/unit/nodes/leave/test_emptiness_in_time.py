"""When the clock of an empty node starts, and that the node goes in time."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError
from shared.model.kubernetes.pods import ControllerRef
from shared.nodes.timers.heartbeats import save_heartbeat
from shared.ports import TimerKind
from tests.builders import NOW, node, pod
from tests.unit.nodes.leave.empty_nodes import TTL, begin, empty_world, stamp_of, step
from tests.unit.worlds import MINUTE, NAME, SECOND, moving_in


def test_forged_reports_change_neither_removal_times_nor_the_number_of_timers() -> None:
    """One each 30 s for an hour, as a compromised forwarder may send them."""
    world = empty_world()
    begin(world)
    first = stamp_of(world.node)
    for second in range(0, 3600, 30):
        if world.node.deletion_at is not None:
            break
        begin(world)
        due = world.outbox.timers_of(TimerKind.EMPTINESS)[-1]
        if second >= TTL.total_seconds():
            step(world, due.payload)
        world.advance(30 * SECOND)
    assert stamp_of(world.node) == first
    assert world.node.deletion_at is not None
    assert world.node.deletion_at - NOW <= TTL + SECOND
    assert len(world.outbox.timers_of(TimerKind.EMPTINESS)) == 1


def test_a_node_that_was_used_since_its_stamp_has_its_whole_ttl_once_more() -> None:
    world = empty_world()
    begin(world)
    world.advance(20 * SECOND)
    world.cluster.add(pod(node_name="n1"))
    # The forwarder reports a pod on the node, or sweep sees it.
    assert begin(world) == "not empty"
    assert stamp_of(world.node) is None
    del world.cluster.pods["default/a"]
    assert begin(world) == "timer started"
    assert stamp_of(world.node) == (NOW + 20 * SECOND).isoformat()


def test_a_daemon_that_must_stay_keeps_no_empty_node_of_a_provisioner() -> None:
    daemon = ControllerRef(kind="DaemonSet", name="d", uid="d")
    kept = {keys.DO_NOT_EVICT: "true"}
    assert begin(empty_world(pod(node_name="n1", owner=daemon, annotations=kept))) == (
        "timer started"
    )


def test_sweep_takes_the_stamp_from_a_node_that_is_used() -> None:
    world = empty_world()
    begin(world)
    world.cluster.add(pod(node_name="n1"))
    world.sweep()
    assert stamp_of(world.node) is None


def test_node_whose_timer_did_not_wake_is_removed_when_it_is_reported_again() -> None:
    world = empty_world()
    begin(world)
    world.advance(TTL + 5 * SECOND)
    assert begin(world) == "removed"
    assert world.node.deletion_at is not None
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1
    assert step(world)["result"] == "gone"


def test_a_node_that_changes_while_it_is_removed_late_waits_for_the_next_report() -> None:
    world = empty_world()
    begin(world)
    world.advance(TTL)
    world.cluster.fail_next("delete_node", ConflictError("written"))
    assert begin(world) == "changed meanwhile"
    assert begin(world) == "removed"


def test_pod_bound_during_a_late_removal_keeps_the_node() -> None:
    world = empty_world()
    begin(world)
    world.advance(TTL)
    moving_in(world)
    assert begin(world) == "not empty"
    assert stamp_of(world.node) is None
    assert not world.node.unschedulable


def test_waits_are_whole_seconds_rounded_up() -> None:
    world = empty_world()
    begin(world)
    world.advance(timedelta(seconds=0.25))
    assert step(world)["wait_seconds"] == 30


@pytest.mark.parametrize("thousandths", [0, 1, 499, 500, 999])
def test_node_is_removed_in_the_first_step_after_its_wait(thousandths: int) -> None:
    """A stamp is in whole seconds and so is a wait: together they add less than two."""
    world = empty_world()
    world.advance(timedelta(milliseconds=thousandths))
    emptied = world.clock.now()
    begin(world)
    (timer,) = world.outbox.timers
    world.advance(timedelta(seconds=timer.payload["wait_seconds"]))

    assert step(world)["result"] == "removed"
    deleted = world.node.deletion_at
    assert deleted is not None
    assert TTL - SECOND < deleted - emptied < TTL + 2 * SECOND


def test_abandoned_replacement_counts_as_empty_when_it_is_reported() -> None:
    world = empty_world(annotations={keys.REPLACES: "old,older"})
    world.cluster.add(node("old"))
    assert begin(world) == "not empty"
    world.advance(4 * MINUTE)
    save_heartbeat(world.ledger, NAME, "uid-old", TimerKind.REPLACEMENT, world.clock.now())
    assert begin(world) == "not empty"
    world.advance(4 * MINUTE)
    assert begin(world) == "timer started"
    assert keys.REPLACES not in world.cluster.node_values["n1"].annotations


@pytest.mark.parametrize("changes", [{"finalizers": ()}, {"deletion_at": NOW}])
def test_a_node_that_is_not_ours_to_change_is_not_written_to(changes: dict[str, Any]) -> None:
    world = empty_world(annotations={keys.REPLACES: "old"}, **changes)
    before = world.node.annotations
    world.advance(60 * MINUTE)
    assert begin(world) == "not empty"
    assert world.node.annotations == before
