"""When drains begin, and when they go on in another execution."""

from datetime import timedelta
from typing import Any

from shared.model import labels as keys
from shared.model.errors import ConflictError
from shared.model.kubernetes.nodes import Node
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.leave.termination import Termination
from shared.nodes.timers.heartbeats import last_heartbeats, save_heartbeat
from shared.nodes.timers.node_timer import MAX_STEPS
from shared.ports import NodeChange, TimerKind
from shared.provisioning.sweep.node_by_node import NodeByNode
from shared.provisioning.sweep.timer_recovery import start_missing_timers
from tests.builders import NOT_READY, NOW, node, pod, provisioner
from tests.unit.nodes.leave.termination.drains import going, step
from tests.unit.worlds import NAME, SECOND, World, instead


def test_beginning_twice_is_one_timer() -> None:
    world = going()
    Termination(world.ports, None).begin("n1")
    assert len(world.outbox.timers) == 1


def test_a_node_whose_owner_is_gone_is_drained_and_its_machine_terminated() -> None:
    world = going(pod(node_name="n1"))
    world.cluster.provisioner_values.clear()
    state = step(world)
    assert world.cluster.called("evict") == ["default/a"]
    while state["next"] != "done":
        world.advance(5 * SECOND)
        state = step(world, state)
    assert state["result"] == "terminated"
    assert world.alive == []


def test_stuck_drain_continues_in_another_execution_when_its_node_is_announced_again() -> None:
    world = going()
    service = Termination(world.ports, None)
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
    assert Termination(world.ports, None).begin("n1") == "timer runs"
    world.advance(5 * SECOND)
    assert Termination(world.ports, None).begin("n1") == "timer started"


def test_of_many_drains_at_once_each_may_have_to_wait() -> None:
    world = going()
    for number in range(49):
        save_heartbeat(world.ledger, NAME, f"uid-{number}", TimerKind.TERMINATION, NOW)
    world.advance(119 * SECOND)
    assert Termination(world.ports, None).begin("n1") == "timer runs"
    world.advance(SECOND)
    assert Termination(world.ports, None).begin("n1") == "timer started"


def test_only_nodes_of_ours_that_are_being_deleted_are_begun() -> None:
    world = World(node("stays"), node("foreign", finalizers=(), deletion_at=NOW))
    service = Termination(world.ports, None)
    assert service.begin("gone") == "gone"
    assert service.begin("stays") == "not ours or not being deleted"
    assert service.begin("foreign") == "not ours or not being deleted"
    assert world.outbox.timers == []


def test_long_drain_continues_in_another_execution() -> None:
    world = going(pod(node_name="n1"))
    world.advance(SECOND)
    state = step(world, steps=MAX_STEPS - 1)
    assert state["result"] == "continued in another execution"
    first, second = world.outbox.timers_of(TimerKind.TERMINATION)
    assert second.payload["steps"] == 0
    assert second.payload["since"] == first.payload["since"]
    assert (world.node.uid, "termination") in last_heartbeats(world.ledger, NAME)


def test_removing_deletes_with_a_reason_and_starts_the_drain() -> None:
    world = World(node())
    assert remove_node(world.ports, world.node, "emptiness")
    assert world.node.annotations[keys.REMOVAL_REASON] == "emptiness"
    assert len(world.outbox.timers) == 1
    world = World(node(finalizers=()))
    assert remove_node(world.ports, world.node, "emptiness")
    assert world.cluster.nodes() == ()
    assert world.outbox.timers == []


def test_a_drain_that_stalls_again_and_again_has_one_execution_in_the_end() -> None:
    held = pod(node_name="n1")
    world = going(held)
    world.cluster.budgeted.add(held.key)
    service = Termination(world.ports, None)
    for _ in range(5):
        for timer in world.outbox.timers_of(TimerKind.TERMINATION):
            service.step(timer.payload)
        world.advance(30 * SECOND)
        assert service.begin("n1") == "timer started"
    states = [
        service.step(timer.payload) for timer in world.outbox.timers_of(TimerKind.TERMINATION)
    ]
    assert len(states) == 6
    assert [state["next"] for state in states].count("wait") == 1
    assert states[0]["result"] == "another execution continues"


def test_drain_continues_later_when_its_node_is_written_meanwhile() -> None:
    world = going(pod(node_name="n1"))
    stale, service = world.node, Termination(world.ports, None)
    world.advance(9 * SECOND)
    world.cluster.fail_next("change_node", ConflictError("written"))
    assert service.begin("n1") == "timer runs"
    assert keys.DRAIN_RUN not in world.node.annotations
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1
    world.cluster.fail_next("change_node", ConflictError("written"))
    late = {**world.outbox.timers_of(TimerKind.TERMINATION)[0].payload, "steps": MAX_STEPS}
    assert service.step(late)["next"] == "wait"
    assert service.step(late)["result"] == "continued in another execution"
    assert world.node.uid == stale.uid


def test_a_sweep_that_takes_its_time_starts_no_second_drain() -> None:
    owner = provisioner(ttl_after_empty=30 * SECOND)
    empty = [node(f"a{n:02}") for n in range(12)]
    world = World(owner, *empty, node("z", deletion_at=NOW))
    Termination(world.ports, None).begin("z")
    original = world.cluster.change_node

    def slow(other_node: Node, change: NodeChange) -> Node:
        world.advance(2 * SECOND)
        save_heartbeat(world.ledger, NAME, "uid-z", TimerKind.TERMINATION, world.clock.now())
        return original(other_node, change)

    instead(world.cluster, "change_node", slow)
    owners = {"default": owner}
    nodes = world.cluster.nodes()
    start_missing_timers(
        world.ports,
        nodes,
        (),
        owners,
        (),
        node_by_node=NodeByNode(),
        registration=300 * SECOND,
        held=False,
    )
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1


def test_pods_that_are_being_bound_to_a_starting_node_arrive_before_its_machine_ends() -> None:
    world = going(taints=(NOT_READY,))
    state = step(world)
    assert (state["wait_seconds"], len(world.alive)) == (30, 1)
    world.cluster.add(pod("late", node_name="n1"))
    world.advance(30 * SECOND)
    state = step(world, state)
    assert world.cluster.called("evict") == ["default/late"]
    assert len(world.alive) == 1
    world.cluster.kubelets_stop_pods()
    step(world, state)
    assert world.alive == []
