"""While the API server cannot be reached nothing live is touched."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.model.errors import AutoscalerError, ThrottledError, UnavailableError
from shared.nodes.join.registration import Registration
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.expiration_timer import Expiration
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from tests.builders import NOW, instance, node, pod, provisioner
from tests.unit.worlds import MINUTE, NAME, SECOND, World

STATE = {
    "cluster": NAME,
    "node": "n1",
    "uid": "uid-n1",
    "instance_id": "i-n1",
    "since": NOW.isoformat(),
}


def gone(*more: Any, **changes: Any) -> World:
    """A node with its machine, and an API server that gives no answer."""
    world = World(provisioner(), node(**changes), *more)
    world.cloud.add(instance())
    world.cluster.calls.clear()
    world.advance(60 * MINUTE)
    for method in ("node", "nodes", "pods_on", "pending_pods", "bound_pods", "provisioners"):
        world.cluster.fail_next(method, *(UnavailableError("time-out") for _ in range(9)))
    return world


def answers_again(world: World) -> None:
    world.cluster._errors.clear()


Step = Callable[[World], object]
STEPS: dict[str, Step] = {
    "emptiness": lambda world: Emptiness(world.ports).step(STATE),
    "expiration": lambda world: Expiration(world.ports).step(STATE),
    "registration": lambda world: Registration(world.ports).step(STATE),
    "termination": lambda world: Termination(world.ports, None).step(STATE),
    "early": lambda world: Termination(world.ports, 120 * MINUTE).step(STATE),
    "unknown": lambda world: Termination(world.ports, MINUTE).step({**STATE, "instance_id": ""}),
    "sweep": lambda world: world.sweep(),
    "bind": lambda world: world.bind("n1"),
    "provision": lambda world: world.provision(),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
def test_no_machine_is_ended_or_bought(step: Step) -> None:
    world = gone(pod("waiting"), deletion_at=NOW)
    with pytest.raises(UnavailableError):
        step(world)
    assert world.cloud.called("terminate") == []
    assert world.cloud.called("create_fleet") == []
    assert world.cluster.calls == []
    assert len(world.alive) == 1


def test_past_the_deadline_the_machine_is_terminated_and_later_its_node() -> None:
    world = gone(pod(node_name="n1"), deletion_at=NOW)
    service = Termination(world.ports, 30 * MINUTE)
    state = service.step(STATE)
    assert (state["next"], state["wait_seconds"]) == ("wait", 30)
    world.advance(5 * MINUTE - SECOND)
    state = service.step(state)
    assert len(world.alive) == 1
    world.advance(SECOND)
    state = service.step(state)
    assert (state["next"], state["wait_seconds"]) == ("wait", 30)
    assert world.alive == []
    for _ in range(3):
        service.step(state)
    answers_again(world)
    assert len(world.cloud.called("terminate")) == 1
    world.advance(SECOND * 2)
    assert service.step(state)["result"] == "terminated"
    assert world.cluster.node_values == {}
    assert world.cluster.pods == {}


ALIVE: dict[str, AutoscalerError | None] = {
    "answers": None,
    "asks to slow down": ThrottledError("429", delay=7 * SECOND),
    "does so without a time": ThrottledError("429"),
}


@pytest.mark.parametrize("answer", ALIVE.values(), ids=list(ALIVE))
def test_past_the_deadline_pods_keep_their_grace_period_while_the_api_server_is_there(
    answer: AutoscalerError | None,
) -> None:
    world = World(provisioner(), node(deletion_at=NOW))
    world.cluster.add(pod(node_name="n1", grace_period_seconds=3600))
    world.cloud.add(instance())
    world.advance(30 * MINUTE)
    service = Termination(world.ports, 30 * MINUTE)
    state = service.step(STATE)
    assert world.cluster.pods["default/a"].deletion_at is not None
    for each in (UnavailableError("503"), answer, UnavailableError("503")):
        if each is not None:
            world.cluster.fail_next("node", each)
        state = service.step(state)
        assert state["wait_seconds"] == _wait_after(each)
        world.advance(4 * MINUTE)
    assert len(world.alive) == 1


def _wait_after(error: AutoscalerError | None) -> int:
    """Return the seconds after which a drain looks again at a node in its grace period."""
    if isinstance(error, ThrottledError):
        return 10 if error.delay is None else 7
    return 2 if error is None else 30


def test_on_return_all_is_reconciled() -> None:
    world = gone(deletion_at=NOW)
    with pytest.raises(UnavailableError):
        world.sweep()
    answers_again(world)
    assert world.sweep().missing_timers == 1
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1
