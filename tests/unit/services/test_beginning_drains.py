"""When drains begin, and when they go on in another execution."""

from datetime import timedelta
from typing import Any

from shared.model import labels as keys
from shared.ports import TimerKind
from shared.services.removing import remove
from shared.services.terminating import Terminating
from tests.builders import NOW, node, pod
from tests.unit.services.drains import going, step
from tests.unit.services.world import NAME, SECOND, World


def test_beginning_twice_is_one_timer() -> None:
    world = going()
    Terminating(world.ports, None).begin("n1")
    assert len(world.outbox.timers) == 1


def test_a_drain_that_hangs_goes_on_in_another_when_its_node_is_spoken_of_again() -> None:
    world = going()
    service = Terminating(world.ports, None)
    world.advance(7 * SECOND)
    assert service.begin("n1") == "timer runs"
    world.advance(SECOND)
    assert service.begin("n1") == "timer started"
    assert service.begin("n1") == "timer runs"
    first, second = world.outbox.timers_of(TimerKind.TERMINATION)
    assert second.payload["since"] == NOW.isoformat()
    assert step(world, second.payload)["result"] == "terminated"
    assert step(world, first.payload)["result"] == "gone"


def test_a_drain_that_waits_long_is_not_taken_for_one_that_hangs() -> None:
    held = pod(node_name="n1")
    world = going(held)
    world.cluster.budgeted.add(held.key)
    state: dict[str, Any] = {}
    for _ in range(4):
        state = step(world, state or None)
        world.advance(timedelta(seconds=state["wait_seconds"]))
    assert state["wait_seconds"] == 10
    world.advance(5 * SECOND)
    assert Terminating(world.ports, None).begin("n1") == "timer runs"
    world.advance(5 * SECOND)
    assert Terminating(world.ports, None).begin("n1") == "timer started"


def test_of_many_drains_at_once_each_may_have_to_wait() -> None:
    world = going()
    for number in range(49):
        world.ledger.note_timer(NAME, f"uid-{number}", TimerKind.TERMINATION, NOW)
    world.advance(119 * SECOND)
    assert Terminating(world.ports, None).begin("n1") == "timer runs"
    world.advance(SECOND)
    assert Terminating(world.ports, None).begin("n1") == "timer started"


def test_only_nodes_of_ours_that_are_being_deleted_are_begun() -> None:
    world = World(node("stays"), node("foreign", finalizers=(), deletion_at=NOW))
    service = Terminating(world.ports, None)
    assert service.begin("gone") == "gone"
    assert service.begin("stays") == "not ours or not being deleted"
    assert service.begin("foreign") == "not ours or not being deleted"
    assert world.outbox.timers == []


def test_a_long_drain_goes_on_in_another_execution() -> None:
    world = going(pod(node_name="n1"))
    world.advance(SECOND)
    state = step(world, steps=1499)
    assert state["result"] == "continued in another execution"
    first, second = world.outbox.timers_of(TimerKind.TERMINATION)
    assert second.payload["steps"] == 0
    assert second.payload["since"] == first.payload["since"]
    assert (world.node.uid, "termination") in world.ledger.timers(NAME)


def test_removing_deletes_with_a_reason_and_starts_the_drain() -> None:
    world = World(node())
    assert remove(world.ports, world.node, "emptiness")
    assert world.node.annotations[keys.REMOVAL_REASON] == "emptiness"
    assert len(world.outbox.timers) == 1
    world = World(node(finalizers=()))
    assert remove(world.ports, world.node, "emptiness")
    assert world.cluster.nodes() == ()
    assert world.outbox.timers == []
