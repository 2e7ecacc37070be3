"""A replacement may crash at any call: no pod is lost, nothing is launched twice."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.timer_state import DONE
from shared.model.values import replace
from shared.nodes.leave.replacement import Replacement
from shared.ports import TimerKind
from tests.builders import SHAPES
from tests.unit.nodes.leave.replacements import half_empty, joined, state_of
from tests.unit.worlds import MINUTE, NAME, Crash, Failures, World

CALLS = range(60)


class Life:
    """Lets minutes pass in a cluster: plans, timers, kubelets, a drain."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.states: dict[str, dict[str, Any]] = {}

    def minute(self) -> None:
        world = self.world
        world.advance(MINUTE)
        world.provision(look=True)
        for node in world.cluster.nodes():
            if node.ready is None:
                shape = SHAPES[node.labels[keys.INSTANCE_TYPE]]
                world.kubelet_joins(
                    node.name, capacity=shape.capacity, allocatable=shape.allocatable
                )
                world.bind(node.name)
        for timer in world.outbox.timers_of(TimerKind.REPLACEMENT):
            state = self.states.get(timer.name, dict(timer.payload))
            if state["next"] != DONE:
                self.states[timer.name] = Replacement(world.ports).step(state)
        self._drain()
        assert len(world.alive) <= 1
        standing = set(world.cluster.node_values)
        assert all(pod.node_name in standing for pod in world.cluster.pods.values())

    def _drain(self) -> None:
        world = self.world
        big = world.cluster.node_values.get("big")
        if big is None or big.deletion_at is None:
            return
        (fresh,) = (node for node in world.cluster.nodes() if node.name != "big")
        for key, pod in world.cluster.pods.items():
            world.cluster.pods[key] = replace(pod, node_name=fresh.name)
        del world.cluster.node_values["big"]


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_call_is_made_good(*, after: bool) -> None:
    failed = 0
    for at in CALLS:
        world = half_empty()
        failures = Failures(at, after=after)
        try:
            world.provisioning(failures.ports(world.ports)).run(
                "doomed", world.clock.now() + 10 * MINUTE, wait_for_batch=False, evaluate=True
            )
        except Crash:
            failed += 1
        life = Life(world)
        for _ in range(30):
            if "big" not in world.cluster.node_values:
                break
            life.minute()
        life.minute()
        assert "big" not in world.cluster.node_values, f"call {at}: {failures.failed}"
        (left,) = world.cluster.nodes()
        assert keys.REPLACES not in left.annotations
        assert world.ledger.open_intents(NAME) == ()
    assert failed > 20


@pytest.mark.parametrize("after", [False, True])
def test_a_step_that_crashes_is_taken_again(*, after: bool) -> None:
    failed = 0
    for at in range(40):
        world = half_empty()
        world.provision(look=True)
        joined(world)
        state = state_of(world)
        failures = Failures(at, after=after)
        try:
            state = Replacement(failures.ports(world.ports)).step(state)
        except Crash:
            failed += 1
        # Step Functions brings the very same state again.
        for _ in range(3):
            state = Replacement(world.ports).step(state)
        big = world.cluster.node_values["big"]
        assert big.deletion_at is not None, f"call {at}: {failures.failed}"
        # One that died before it started the drain leaves that to the event of the deletion.
        assert len(world.outbox.timers_of(TimerKind.TERMINATION)) <= 1
        del world.cluster.node_values["big"]
        assert Replacement(world.ports).step(state)["result"] == "replaced"
    assert failed > 10
