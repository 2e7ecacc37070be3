"""Nodes of NodePools expire by force: their replacement is ready by then, where it can be."""

from datetime import timedelta
from typing import Any

from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.errors import ConflictError
from shared.model.kubernetes.nodes import Node
from shared.model.policy import KarpenterBehavior
from shared.model.provisioner import Provisioner
from shared.nodes.leave.expiration_timer import Expiration
from shared.nodes.leave.replacement import Replacement
from shared.nodes.timers.heartbeats import last_heartbeats
from shared.nodes.timers.timers import start_expiration
from shared.ports import TimerKind
from tests.builders import NOW, OTHER_SHAPE, budget, node_of, pod, provisioner
from tests.unit.nodes.leave.replacements import joined, state_of
from tests.unit.worlds import MINUTE, NAME, World, instead

HOUR = timedelta(hours=1)
DRIFT = DisruptionSettings(drift=True)
STATE = {"cluster": NAME, "node": "big", "uid": "uid-big", "since": NOW.isoformat()}
KEPT = {keys.DO_NOT_DISRUPT: "true"}


def pool(**more: Any) -> Provisioner:
    return provisioner(kind=OwnerKind.NODE_POOL, ttl_until_expired=HOUR, **more)


def of_pool(**more: Any) -> Node:
    labels = {keys.NODE_POOL: "default", keys.INITIALIZED: "true"}
    annotations = {keys.SLOT: "p/g/0", **more.pop("annotations", {})}
    return node_of("big", "m5.2xlarge", labels=labels, annotations=annotations, **more)


def held(**more: Any) -> World:
    """Return a cluster whose pod is held by an annotation and by a budget."""
    one = pod("a", node_name="big", cpu=1000, annotations=KEPT, labels={"app": "web"})
    return World(pool(**more), of_pool(), one, budget())


def step(world: World, state: Any = STATE) -> dict[str, Any]:
    return Expiration(world.ports).step(state)


def test_a_replacement_is_asked_for_ten_minutes_ahead_once() -> None:
    world = held()
    assert step(world)["wait_seconds"] == 50 * 60
    assert world.outbox.evaluations == []
    world.advance(50 * MINUTE)
    state = step(world)
    assert (state["wait_seconds"], world.outbox.evaluations) == (600, [NAME])
    assert last_heartbeats(world.ledger, NAME)["uid-big", "expiration"] == NOW + HOUR
    world.advance(9 * MINUTE)
    assert step(world, state)["wait_seconds"] == 60
    assert world.outbox.evaluations == [NAME]
    assert world.cluster.node_values["big"].deletion_at is None


def test_as_in_karpenter_no_replacement_is_asked_for_ahead() -> None:
    world = held(as_karpenter=frozenset({KarpenterBehavior.EXPIRATION}))
    assert step(world)["wait_seconds"] == 60 * 60
    world.advance(HOUR)
    assert step(world)["result"] == "removed"
    assert world.outbox.evaluations == []


def test_the_timer_of_a_new_node_wakes_when_its_replacement_is_due() -> None:
    world = held()
    start_expiration(world.ports, world.cluster.node_values["big"], pool(), NOW)
    (timer,) = world.outbox.timers_of(TimerKind.EXPIRATION)
    assert timer.payload["wait_seconds"] == 50 * 60


def test_it_goes_then_whatever_holds_it() -> None:
    world = held()
    world.advance(HOUR)
    instead(world.cluster, "delete_node", failing_once(world))
    assert step(world)["wait_seconds"] == 1
    assert step(world)["result"] == "removed"
    node = world.cluster.node_values["big"]
    assert node.deletion_at is not None
    assert node.annotations[keys.REMOVAL_REASON] == "expiration"


def failing_once(world: World) -> Any:
    delete = world.cluster.delete_node

    def fail(node: Node) -> None:
        instead(world.cluster, "delete_node", delete)
        raise ConflictError("changed")

    return fail


def test_a_replacement_that_is_ready_waits_for_the_expiration() -> None:
    world = held()
    world.advance(55 * MINUTE)
    assert world.provision(look=True).nodes_disrupted == 1
    joined(world)
    waiting = Replacement(world.ports).step(state_of(world))
    assert (waiting["next"], waiting["wait_seconds"]) == ("wait", 10)
    assert not world.cluster.node_values["big"].unschedulable
    world.advance(6 * MINUTE)
    Replacement(world.ports).step(waiting)
    assert world.cluster.node_values["big"].deletion_at is not None


def test_a_brake_holds_an_expiration_by_force_too() -> None:
    world = World(pool(paused=True), of_pool())
    world.advance(2 * HOUR)
    assert step(world)["result"] == "may not expire"
    assert world.outbox.timers_of(TimerKind.TERMINATION) == []


def test_a_drifted_node_under_a_grace_period_is_removed_though_a_pod_holds_it() -> None:
    world = World(
        pool(termination_grace_period=HOUR),
        of_pool(annotations=OTHER_SHAPE),
        pod("a", node_name="big", cpu=1000, annotations=KEPT),
    )
    world.disruption = DRIFT
    world.advance(10 * MINUTE)
    assert world.provision(look=True).nodes_disrupted == 1
    joined(world)
    Replacement(world.ports).step(state_of(world))
    assert world.cluster.node_values["big"].deletion_at is not None


def test_a_node_launched_to_live_longer_is_replaced_at_a_lowered_age_and_removed_at_its_own() -> (
    None
):
    world = World(pool(), of_pool(annotations={keys.EXPIRE_AFTER: "7200"}))
    world.advance(HOUR)
    state = step(world)
    assert (state["wait_seconds"], world.outbox.evaluations) == (60, [NAME])
    assert world.cluster.node_values["big"].deletion_at is None
    world.advance(HOUR)
    step(world, state)
    assert world.cluster.node_values["big"].deletion_at is not None
