"""Drains that end at a time: terminationGracePeriod of a NodePool."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import AutoscalerError, NotInstalledError, UnavailableError
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from tests.builders import NOW, instance, node, pod, provisioner
from tests.unit.nodes.leave.termination.drains import going, step
from tests.unit.worlds import MINUTE, SECOND, World, failing, instead

HOUR = timedelta(hours=1)
KEPT = {keys.DO_NOT_DISRUPT: "true"}


def ending(*more: Any, span: timedelta | None = HOUR, **changes: Any) -> World:
    """A node that was deleted just now, of an owner whose drains last so long at most."""
    owner = provisioner(termination_grace_period=span)
    world = World(owner, node(deletion_at=NOW, **changes), *more)
    world.cloud.add(instance())
    Termination(world.ports, None).begin("n1")
    return world


def stepped(world: World) -> dict[str, Any]:
    return step(world, world.outbox.timers_of(TimerKind.TERMINATION)[-1].payload)


def machine_of(world: World) -> str:
    (seen,) = world.cloud.instances(["i-n1"])
    return seen.state


def test_the_end_is_written_on_the_node_once_and_told() -> None:
    world = ending(pod("a", node_name="n1", annotations=KEPT))
    stepped(world)
    written = world.node.annotations[keys.TERMINATION_TIMESTAMP]
    assert written == (NOW + HOUR).isoformat(timespec="seconds")
    (told,) = world.messages("TerminationGracePeriodExpiring")
    assert told.endswith("at the latest, whatever is on it then")
    world.cluster.add(provisioner(termination_grace_period=2 * HOUR))
    stepped(world)
    assert world.node.annotations[keys.TERMINATION_TIMESTAMP] == written
    bare = ending(pod("a", node_name="n1"), span=None)
    stepped(bare)
    assert keys.TERMINATION_TIMESTAMP not in bare.node.annotations


def test_a_held_pod_is_deleted_in_time_for_its_own_grace_period() -> None:
    held = pod("a", node_name="n1", annotations=KEPT, grace_period_seconds=1800)
    quick = pod("b", node_name="n1", annotations=KEPT, grace_period_seconds=60)
    world = ending(held, quick)
    stepped(world)
    world.advance(30 * MINUTE - SECOND)
    stepped(world)
    assert world.cluster.called("delete_pod") == []
    world.advance(SECOND)
    stepped(world)
    assert world.cluster.called("delete_pod") == ["default/a"]
    assert world.cluster.pods["default/a"].deletion_at == NOW + HOUR
    world.advance(29 * MINUTE)
    stepped(world)
    assert world.cluster.called("delete_pod") == ["default/a", "default/b"]


def test_the_machine_ends_then_though_pods_are_left() -> None:
    world = ending(pod("a", node_name="n1", annotations=KEPT))
    stepped(world)
    world.advance(HOUR)
    stepped(world)
    assert machine_of(world) == "terminated"
    assert world.node.deletion_at is not None


def test_an_eviction_that_a_budget_refuses_takes_no_grace_period_from_others() -> None:
    held = pod("a", node_name="n1", annotations=KEPT, grace_period_seconds=1800)
    world = ending(held, pod("b", node_name="n1", grace_period_seconds=30))
    world.cluster.budgeted.add("default/b")
    stepped(world)
    world.advance(30 * MINUTE)
    assert stepped(world)["wait_seconds"] == 2
    assert world.cluster.called("delete_pod") == ["default/a"]
    assert world.cluster.pods["default/a"].deletion_at == NOW + HOUR
    assert machine_of(world) == "running"
    assert world.messages("DeletionRefused") == []
    world.advance(30 * MINUTE)
    stepped(world)
    assert machine_of(world) == "terminated"


def test_a_deletion_that_is_refused_ends_no_machine_before_its_time() -> None:
    world = ending(pod("a", node_name="n1", annotations=KEPT, grace_period_seconds=1800))
    world.cluster.undeletable.add("default/a")
    stepped(world)
    world.advance(30 * MINUTE)
    world.cluster.add(pod("b", node_name="n1", grace_period_seconds=300))
    assert stepped(world)["wait_seconds"] == 2, "b leaves"
    world.cluster.kubelets_stop_pods()
    state = stepped(world)
    assert (machine_of(world), state["blocked"]) == ("running", 1)
    assert world.messages("DeletionRefused") == []
    world.advance(30 * MINUTE)
    stepped(world)
    assert machine_of(world) == "terminated"


def test_a_pod_that_may_not_be_disrupted_is_not_evicted_from_a_node_that_a_user_deletes() -> None:
    world = going(pod("a", node_name="n1", annotations=KEPT), pod("b", node_name="n1"))
    step(world)
    assert world.cluster.called("evict") == ["default/b"]
    assert "by default/a (do-not-disrupt)" in world.node.annotations[keys.DRAIN_BLOCKED]


def test_a_drain_whose_owner_cannot_be_read_goes_on_and_is_told_its_end_later() -> None:
    world = ending(pod("a", node_name="n1"))
    world.cluster.fail_next("provisioners", UnavailableError("away"))
    state = stepped(world)
    assert world.cluster.called("evict") == ["default/a"]
    assert keys.TERMINATION_TIMESTAMP not in world.node.annotations
    step(world, state)
    assert keys.TERMINATION_TIMESTAMP in world.node.annotations


def orphaned(**changes: Any) -> World:
    """The same, its owner gone before it, as when a NodePool is deleted."""
    world = ending(pod("a", node_name="n1", annotations=KEPT), **changes)
    world.cluster.provisioner_values.clear()
    return world


def test_a_node_whose_owner_is_gone_ends_as_was_said_at_its_launch() -> None:
    world = orphaned(annotations={keys.TERMINATION_GRACE_PERIOD: "1800"})
    stepped(world)
    written = world.node.annotations[keys.TERMINATION_TIMESTAMP]
    assert written == (NOW + 30 * MINUTE).isoformat(timespec="seconds")
    world.advance(30 * MINUTE)
    stepped(world)
    assert machine_of(world) == "terminated"
    bare = orphaned()
    stepped(bare)
    assert keys.TERMINATION_TIMESTAMP not in bare.node.annotations


@pytest.mark.parametrize("span", [None, 2 * HOUR])
def test_what_the_owner_says_now_holds_and_not_what_it_said_at_the_launch(
    span: timedelta | None,
) -> None:
    held = pod("a", node_name="n1", annotations=KEPT)
    world = ending(held, span=span, annotations={keys.TERMINATION_GRACE_PERIOD: "60"})
    state = stepped(world)
    for _ in range(3):
        state = step(world, state)
    written = world.node.annotations.get(keys.TERMINATION_TIMESTAMP)
    assert written == (span and (NOW + span).isoformat(timespec="seconds"))


@pytest.mark.parametrize("error", [UnavailableError("away"), NotInstalledError("no NodePools")])
def test_an_owner_that_cannot_be_read_for_long_counts_as_gone(error: AutoscalerError) -> None:
    world = orphaned(annotations={keys.TERMINATION_GRACE_PERIOD: "1800"})
    instead(world.cluster, "provisioners", failing(error))
    state = step(world, stepped(world))
    assert keys.TERMINATION_TIMESTAMP not in world.node.annotations
    step(world, state)
    assert keys.TERMINATION_TIMESTAMP in world.node.annotations
