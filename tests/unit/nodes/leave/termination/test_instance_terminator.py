"""Many machines are looked at and ended with few calls."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import PermanentError, ThrottledError, UnauthorizedError
from shared.model.note import Note
from shared.nodes.leave.instance_terminator import INSTANCE_STATUSES, InstanceTerminator
from tests.builders import TAGS, instance, node
from tests.unit.worlds import NAME, SECOND, Crash, Failures, World, instead


def world_of(count: int, **changes: Any) -> World:
    world = World()
    world.cloud.add(*(instance(f"i-{n}", **changes) for n in range(count)))
    return world


def look(world: World, number: int = 0, *, end: bool = True) -> str | None:
    seen, _ = InstanceTerminator(world.ports).describe(f"i-{number}", terminate=end)
    return None if seen is None else seen.state


def calls(world: World) -> tuple[int, int]:
    return len(world.cloud.called("instances")), len(world.cloud.called("terminate"))


def test_one_machine_is_ended_at_once() -> None:
    world = world_of(1)
    assert look(world) == "shutting-down"
    assert world.alive == []
    assert calls(world) == (1, 1)
    assert look(world) == "shutting-down"
    assert calls(world) == (1, 1)


def test_two_that_are_ended_together_do_not_wait_for_each_other() -> None:
    world = world_of(2)
    assert look(world, 0) == "shutting-down"
    assert look(world, 1) == "shutting-down"


def test_a_thousand_are_ended_with_few_calls() -> None:
    world = world_of(1000)
    waiting: dict[int, float] = {number: number / 200 for number in range(1000)}
    time, latest = 0.0, 0.0
    while waiting:
        number = min(waiting, key=lambda entry: (waiting[entry], entry))
        world.advance(timedelta(seconds=max(waiting[number] - time, 0)))
        time = max(time, waiting[number])
        seen, wait = InstanceTerminator(world.ports).describe(f"i-{number}", terminate=True)
        if seen is not None and seen.is_terminated:
            del waiting[number]
            latest = time
        else:
            waiting[number] = time + wait.total_seconds()
    looks, ends = calls(world)
    assert world.alive == []
    assert looks <= 20
    assert ends <= 20
    assert latest <= 35


def test_during_a_drain_the_last_read_is_reused_for_a_while() -> None:
    world = world_of(1)
    for _ in range(14):
        assert look(world, end=False) == "running"
        world.advance(2 * SECOND)
    assert calls(world) == (1, 0)
    world.advance(2 * SECOND)
    world.cloud.end("i-0")
    assert look(world, end=False) == "terminated"
    assert calls(world) == (2, 0)


def test_what_was_seen_a_moment_ago_need_not_be_looked_at_again_to_be_ended() -> None:
    world = world_of(1)
    look(world, end=False)
    world.advance(2 * SECOND)
    assert look(world) == "shutting-down"
    assert calls(world) == (1, 1)


def test_timer_that_finds_the_turn_taken_waits_a_little() -> None:
    world = world_of(1)
    ports = Failures(at=4, after=False).ports(world.ports)
    with pytest.raises(Crash):
        InstanceTerminator(ports).describe("i-0", terminate=True)
    assert InstanceTerminator(world.ports).describe("i-0", terminate=True) == (None, 2 * SECOND)
    world.advance(10 * SECOND)
    assert look(world) == "shutting-down"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(7))
def test_a_crash_anywhere_costs_seconds(at: int, *, after: bool) -> None:
    world = world_of(1)
    with pytest.raises(Crash):
        InstanceTerminator(Failures(at=at, after=after).ports(world.ports)).describe(
            "i-0", terminate=True
        )
    world.advance(10 * SECOND)
    assert look(world) in ("shutting-down", "terminated")
    assert world.alive == []


def test_two_that_want_the_turn_at_once_do_not_both_get_it() -> None:
    world = world_of(2)
    original = world.ledger.notes

    def memos(cluster: str, prefix: str) -> Any:
        instead(world.ledger, "notes", original)
        stale = InstanceTerminator(world.ports)
        assert stale.describe("i-1", terminate=True) == (None, 2 * SECOND)
        return original(cluster, prefix)

    instead(world.ledger, "notes", memos)
    assert look(world, 0) == "shutting-down"
    assert calls(world) == (1, 1)
    assert world.alive == []


def test_the_turn_may_be_lost_between_reading_and_taking_it() -> None:
    world = world_of(1)
    world.ledger.change_note = lambda *_: False  # type: ignore[method-assign]
    assert look(world) is None
    assert calls(world) == (0, 0)


def test_a_throttle_keeps_what_was_seen_and_makes_all_wait() -> None:
    world = world_of(1)
    world.cloud.fail_next("terminate", ThrottledError("slow", delay=7 * SECOND))
    assert look(world) == "running"
    assert InstanceTerminator(world.ports).describe("i-0", terminate=True) == (None, 7 * SECOND)
    world.advance(7 * SECOND)
    assert look(world) == "shutting-down"
    assert calls(world) == (1, 2)


PROTECTED = PermanentError("OperationNotPermitted: protected")
DENIED = UnauthorizedError("UnauthorizedOperation: not authorized")


def refusing(world: World, refused: set[str], error: Exception = PROTECTED) -> None:
    original = world.cloud.terminate

    def terminate(ids: Any) -> None:
        if refused & set(ids):
            raise error
        original(ids)

    instead(world.cloud, "terminate", terminate)


@pytest.mark.parametrize("error", [PROTECTED, DENIED])
def test_a_machine_that_ec2_refuses_to_end_does_not_keep_the_others_alive(
    error: Exception,
) -> None:
    world = world_of(40)
    refusing(world, {"i-7"}, error)
    for number in range(40):
        world.ledger.put_note(NAME, _going(number), world.clock.now())
    assert look(world, 0) == "shutting-down"
    assert [instance.instance_id for instance in world.alive] == ["i-7"]
    with pytest.raises(PermanentError, match=f"i-7: {error}"):
        look(world, 7)
    world.advance(60 * SECOND)
    refusing(world, set())
    instead(world.cloud, "terminate", type(world.cloud).terminate.__get__(world.cloud))
    assert look(world, 7) == "shutting-down"


@pytest.mark.parametrize("error", [PROTECTED, DENIED])
def test_when_all_are_refused_only_some_are_tried(error: Exception) -> None:
    world = world_of(100)
    refusing(world, {f"i-{n}" for n in range(100)}, error)
    for number in range(100):
        world.ledger.put_note(NAME, _going(number), world.clock.now())
    look(world, 0)
    refused = [
        entry
        for entry in world.ledger.note(NAME, INSTANCE_STATUSES).value["seen"].values()
        if entry["refused"]
    ]
    assert 10 <= len(refused) < 20


def test_a_machine_that_may_not_be_ended_fails_no_drain_but_its_own() -> None:
    """The execution that has the turn asks for it, too, and would be ended by an error about it."""
    world = world_of(2)
    refusing(world, {"i-1"}, DENIED)
    look(world, 0)
    world.ledger.put_note(NAME, _going(1), world.clock.now())
    world.advance(60 * SECOND)
    assert look(world, 0) == "terminated"
    with pytest.raises(PermanentError, match="i-1: UnauthorizedOperation"):
        look(world, 1)


def test_one_that_is_not_known_or_not_ours_is_not_ended() -> None:
    world = world_of(1, tags={**TAGS, keys.TAG_CLUSTER: "another"})
    assert look(world) == "running"
    assert look(world, 5) == ""
    assert calls(world)[1] == 0


@pytest.mark.parametrize(("name", "ended"), [("n1", True), ("n2", False), ("i-0", True)])
def test_a_machine_is_ended_for_its_own_node_alone(*, name: str, ended: bool) -> None:
    world = world_of(1, private_dns_name="n1")
    seen, _ = InstanceTerminator(world.ports).describe("i-0", terminate=True, node=node(name))
    assert seen is not None
    assert (seen.ours, world.alive == []) == (ended, ended)


def test_what_is_forgotten_is_no_longer_asked_for() -> None:
    world = world_of(2)
    look(world, 0, end=False)
    InstanceTerminator(world.ports).forget("i-0")
    world.advance(timedelta(minutes=1))
    look(world, 1, end=False)
    assert world.cloud.called("instances")[-1] == ("i-1",)


def _going(number: int) -> Note:
    return Note(name=f"going#i-{number}", value={"end": True})
