"""When the clock of an empty node starts, and that the node goes in time."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError
from shared.ports import TimerKind
from shared.services.emptying import Emptying
from tests.builders import NOW, node
from tests.unit.services.empty_nodes import TTL, begin, empty_world, moving_in, stamp_of, step
from tests.unit.services.world import MINUTE, NAME, SECOND


def test_the_clock_starts_when_the_node_became_empty_and_not_when_that_was_heard() -> None:
    world = empty_world()
    world.advance(8 * SECOND)
    Emptying(world.ports).begin("n1", NOW, seen_at=NOW + 7 * SECOND)
    assert stamp_of(world.node) == NOW.isoformat()
    assert world.outbox.timers[0].payload["wait_seconds"] == 22


@pytest.mark.parametrize(
    ("since", "seen_at", "stamp"),
    [
        # A promise may have held it until just now.
        (NOW - 60 * SECOND, NOW, NOW - 15 * SECOND),
        # Others may have come and gone since this was said.
        (NOW - 13 * SECOND, NOW - 11 * SECOND, NOW),
        # Clocks differ.
        (NOW + 3 * SECOND, NOW + 3 * SECOND, NOW),
        (None, None, NOW),
    ],
)
def test_a_message_is_believed_as_far_as_it_can_be(
    since: datetime | None, seen_at: datetime | None, stamp: datetime
) -> None:
    world = empty_world()
    Emptying(world.ports).begin("n1", since, seen_at=seen_at)
    assert stamp_of(world.node) == stamp.isoformat()


def test_a_node_whose_timer_did_not_wake_goes_when_it_is_reported_again() -> None:
    world = empty_world()
    begin(world, NOW)
    world.advance(TTL + 5 * SECOND)
    assert begin(world, NOW) == "removed"
    assert world.node.deletion_at is not None
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1
    assert step(world)["result"] == "gone"


def test_a_node_that_changes_while_it_is_removed_late_waits_for_the_next_report() -> None:
    world = empty_world()
    begin(world, NOW)
    world.advance(TTL)
    world.cluster.fail_next("delete_node", ConflictError("written"))
    assert begin(world, NOW) == "changed meanwhile"
    assert begin(world, NOW) == "removed"


def test_whoever_moves_in_while_a_node_is_removed_late_keeps_it() -> None:
    world = empty_world()
    begin(world, NOW)
    world.advance(TTL)
    moving_in(world)
    assert begin(world, NOW) == "not empty"
    assert stamp_of(world.node) is None
    assert not world.node.unschedulable


def test_a_node_that_empties_again_starts_its_clock_anew() -> None:
    world = empty_world()
    begin(world, NOW)
    old = world.outbox.timers[0].payload
    world.advance(20 * SECOND)
    begin(world, world.clock.now())
    assert stamp_of(world.node) == (NOW + 20 * SECOND).isoformat()
    assert len(world.outbox.timers) == 2
    world.advance(10 * SECOND)
    assert step(world, old)["result"] == "empty anew: another timer runs"
    assert (world.node.uid, "emptiness") in world.ledger.timers(NAME)
    assert step(world)["wait_seconds"] == 20


def test_waits_are_whole_seconds_rounded_up() -> None:
    world = empty_world()
    begin(world, NOW)
    world.advance(timedelta(seconds=0.25))
    assert step(world)["wait_seconds"] == 30


@pytest.mark.parametrize("thousandths", [0, 1, 499, 500, 999])
def test_a_node_goes_in_the_very_step_in_which_its_timer_wakes(thousandths: int) -> None:
    """A stamp is in whole seconds and so is a wait: together they add less than two."""
    world = empty_world()
    world.advance(timedelta(milliseconds=thousandths))
    emptied = world.clock.now()
    begin(world, emptied)
    (timer,) = world.outbox.timers
    world.advance(timedelta(seconds=timer.payload["wait_seconds"]))

    assert step(world)["result"] == "removed"
    deleted = world.node.deletion_at
    assert deleted is not None
    assert TTL - SECOND < deleted - emptied < TTL + 2 * SECOND


def test_a_replacement_that_nobody_waits_for_any_more_counts_as_empty_when_it_is_reported() -> None:
    world = empty_world(annotations={keys.REPLACES: "old,older"})
    world.cluster.add(node("old"))
    assert begin(world) == "not empty"
    world.advance(4 * MINUTE)
    world.ledger.note_timer(NAME, "uid-old", TimerKind.REPLACEMENT, world.clock.now())
    assert begin(world) == "not empty"
    world.advance(4 * MINUTE)
    assert begin(world) == "timer started"
    assert keys.REPLACES not in world.cluster.node_values["n1"].annotations


@pytest.mark.parametrize("changes", [{"finalizers": ()}, {"deletion_at": NOW}])
def test_a_node_that_is_not_ours_to_change_is_not_written_to(changes: dict[str, Any]) -> None:
    world = empty_world(annotations={keys.REPLACES: "old"}, **changes)
    world.advance(60 * MINUTE)
    assert begin(world) == "not empty"
    assert world.node.annotations == {keys.REPLACES: "old"}
