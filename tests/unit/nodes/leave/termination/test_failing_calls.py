"""Drains while calls to the API server fail that delete or evict pods."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import UnavailableError
from shared.model.kubernetes.pods import Pod
from tests.builders import NOW, pod
from tests.unit.nodes.leave.termination.drains import going, step
from tests.unit.worlds import MINUTE, SECOND, World, failing, instead

KEPT = {keys.DO_NOT_DISRUPT: "true"}
DEADLINE = 10 * MINUTE
WEBHOOK = UnavailableError("delete default/a: 500 Internal error: failed calling webhook")


def fails_for(world: World, method: str, *names: str) -> Callable[..., None]:
    """Let a method of the cluster fail for these pods; return what it was."""
    original: Callable[..., None] = getattr(world.cluster, method)

    def call(asked: Pod, *more: Any) -> None:
        if asked.name in names:
            raise WEBHOOK
        original(asked, *more)

    instead(world.cluster, method, call)
    return original


def kept(*names: str, seconds: int = 30) -> World:
    """A drain past its deadline, with pods that only a deletion takes away."""
    pods = [
        pod(name, node_name="n1", annotations=KEPT, grace_period_seconds=seconds) for name in names
    ]
    world = going(*pods)
    world.advance(DEADLINE)
    return world


def stepped(world: World, state: Any = None, *, after: timedelta = timedelta(0)) -> dict[str, Any]:
    world.advance(after)
    return step(world, state, deadline=DEADLINE)


def test_a_deletion_that_fails_keeps_no_other_and_holds_no_machine_for_ever() -> None:
    world = kept("a", "b")
    fails_for(world, "delete_pod", "a")
    state = stepped(world)
    assert world.cluster.called("delete_pod") == ["default/b"]
    assert f"default/a ({WEBHOOK})" in world.node.annotations[keys.DRAIN_BLOCKED]
    world.cluster.kubelets_stop_pods()
    state = stepped(world, state, after=5 * MINUTE - SECOND)
    assert (state["wait_seconds"], len(world.alive)) == (10, 1)
    stepped(world, state, after=SECOND)
    assert world.alive == []
    assert world.node.annotations[keys.DELETION_REFUSED] == f"default/a ({WEBHOOK})"


def test_the_grace_period_of_other_pods_is_waited_for_however_long_a_deletion_fails() -> None:
    world = kept("a", "b", seconds=3600)
    fails_for(world, "delete_pod", "a")
    state = stepped(world, stepped(world), after=30 * MINUTE)
    assert (state["wait_seconds"], len(world.alive)) == (2, 1)
    world.cluster.kubelets_stop_pods()
    stepped(world, state)
    assert world.alive == []


def test_a_deletion_that_succeeds_in_between_gives_the_pod_its_grace_period() -> None:
    world = kept("a")
    original = fails_for(world, "delete_pod", "a")
    state = stepped(world)
    instead(world.cluster, "delete_pod", original)
    state = stepped(world, state, after=6 * MINUTE)
    assert "undeleted_since" not in state
    assert world.cluster.pods["default/a"].deletion_at == world.clock.now() + 30 * SECOND
    assert len(world.alive) == 1


def test_an_api_server_that_takes_no_writes_holds_no_machine_past_the_deadline() -> None:
    world = going(pod("a", node_name="n1", annotations=KEPT))
    state = stepped(world)
    world.advance(DEADLINE)
    for method in ("delete_pod", "evict", "change_node"):
        instead(world.cluster, method, failing(UnavailableError("503")))
    state = stepped(world, state)
    assert len(world.alive) == 1
    with pytest.raises(UnavailableError):
        stepped(world, state, after=5 * MINUTE)
    assert world.alive == []


def test_an_eviction_that_fails_keeps_no_other_and_is_told() -> None:
    world = going(pod("a", node_name="n1"), pod("b", node_name="n1"))
    fails_for(world, "evict", "a")
    state = step(world)
    assert world.cluster.called("evict") == ["default/b"]
    assert state["wait_seconds"] == 2
    assert f"default/a ({WEBHOOK})" in world.node.annotations[keys.DRAIN_BLOCKED]


def test_a_step_all_of_whose_calls_fail_is_repeated_by_its_execution() -> None:
    world = going(pod("a", node_name="n1"), pod("b", node_name="n1"))
    fails_for(world, "evict", "a", "b")
    with pytest.raises(UnavailableError):
        step(world)
    assert keys.DRAIN_BLOCKED not in world.node.annotations


def test_pods_that_would_outlive_their_node_are_deleted_though_evictions_fail() -> None:
    ends_at = (NOW + 30 * MINUTE).isoformat()
    world = going(
        pod("a", node_name="n1"),
        pod("b", node_name="n1", grace_period_seconds=1800),
        annotations={keys.TERMINATION_TIMESTAMP: ends_at},
    )
    fails_for(world, "evict", "a")
    step(world)
    assert world.cluster.called("delete_pod") == ["default/b"]
