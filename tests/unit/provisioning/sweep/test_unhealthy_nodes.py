"""Nodes whose kubelet stopped: sweep has empty ones removed, and tells of each once."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.model.node_budgets import NodeBudget
from shared.model.values import replace
from shared.nodes.events.node_events import MOST_PODS
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.ports import TimerKind
from tests.builders import NOW, node_of, pod, provisioner
from tests.unit.provisioning.sweep.settled import machine
from tests.unit.worlds import MINUTE, World, instead

LAST = ControllerRef(kind="StatefulSet", name="db", uid="db")
EMPTIES = provisioner(ttl_after_empty=MINUTE)
BUDGET = (NodeBudget(percent=10),)


def dead(*more: Any, owner: Any = EMPTIES, **changes: Any) -> World:
    """Return a world with one node, whose kubelet has just stopped."""
    one = node_of("n1", **{"ready": None, "ready_changed_at": NOW, **changes})
    world = World(owner, one, *more)
    world.cloud.add(machine("i-n1"))
    return world


def told(world: World) -> int:
    return sum(n for event, n in world.cluster.kube_events.items() if event.reason == "NotReady")


def test_a_node_whose_pods_only_leave_is_removed_as_empty() -> None:
    world = dead(pod("db-0", node_name="n1", owner=LAST, deletion_at=NOW))
    world.sweep()
    (timer,) = world.outbox.timers_of(TimerKind.EMPTINESS)
    world.advance(MINUTE)
    assert Emptiness(world.ports).step(timer.payload)["result"] == "removed"
    assert world.node.annotations[keys.REMOVAL_REASON] == "emptiness"


def test_a_pod_that_no_taint_has_evicted_keeps_it() -> None:
    world = dead(pod("db-0", node_name="n1", owner=LAST))
    world.sweep()
    assert world.outbox.timers_of(TimerKind.EMPTINESS) == []


def test_an_expired_node_is_removed_though_it_is_not_ready() -> None:
    world = dead(owner=provisioner(ttl_until_expired=MINUTE))
    world.advance(10 * MINUTE)
    assert world.provision(look=True).nodes_disrupted == 1


def test_an_empty_node_that_is_not_ready_does_not_hold_itself() -> None:
    world = dead(owner=replace(EMPTIES, budgets=BUDGET))
    assert Emptiness(world.ports).begin("n1") == "timer started"
    world.advance(MINUTE)
    assert Emptiness(world.ports).begin("n1") == "removed"


def test_a_dead_node_holds_no_empty_one_that_is_ready() -> None:
    owner = replace(EMPTIES, budgets=BUDGET)
    world = dead(node_of("n2"), pod("a", node_name="n1"), owner=owner)
    world.cloud.add(machine("i-n2"))
    assert Emptiness(world.ports).begin("n2") == "timer started"
    world.advance(5 * MINUTE)
    assert Emptiness(world.ports).begin("n2") == "removed"


def test_it_is_told_after_five_minutes_and_once() -> None:
    world = dead(pod("a", node_name="n1"))
    world.advance(4 * MINUTE)
    world.sweep()
    assert told(world) == 0
    assert world.cluster.provisioner_statuses["default"].unhealthy == ""
    for _ in range(30):
        world.advance(MINUTE)
        world.sweep()
    (text,) = world.messages("NotReady", "Node")
    assert told(world) == 1
    assert text.startswith(
        "has been NotReady for more than 5 min; it is removed as empty once these pods"
    )
    assert world.cluster.provisioner_statuses["default"].unhealthy == "n1"


def test_it_is_told_again_when_it_stops_again() -> None:
    world = dead(pod("a", node_name="n1"))
    world.advance(5 * MINUTE)
    world.sweep()
    world.cluster.add(replace(world.node, ready=True, ready_changed_at=world.clock.now()))
    world.sweep()
    assert world.cluster.provisioner_statuses["default"].unhealthy == ""
    world.cluster.add(replace(world.node, ready=False, ready_changed_at=world.clock.now()))
    world.advance(5 * MINUTE)
    world.sweep()
    assert told(world) == 2


def test_a_node_of_others_or_that_never_was_initialized_is_not_told() -> None:
    for changes in ({"finalizers": ()}, {"labels": {keys.INITIALIZED: ""}}):
        world = dead(**changes)
        world.advance(10 * MINUTE)
        world.sweep()
        assert told(world) == 0


def test_of_very_many_some_are_told_each_minute() -> None:
    more = [node_of(f"m{number}", ready=None, ready_changed_at=NOW) for number in range(MOST_PODS)]
    world = dead(*more)
    for found in more:
        world.cloud.add(machine(found.instance_id))
    world.advance(5 * MINUTE)
    world.sweep()
    assert told(world) == MOST_PODS
    world.sweep()
    assert told(world) == MOST_PODS + 1


def test_of_two_sweeps_at_a_time_one_tells() -> None:
    world = dead()
    instead(world.ledger, "change_note", lambda *_: False)
    world.advance(5 * MINUTE)
    world.sweep()
    assert told(world) == 0


@pytest.mark.parametrize("paused", [False, True])
def test_where_nothing_is_removed_the_reason_is_told(*, paused: bool) -> None:
    world = dead(owner=provisioner(paused=paused))
    world.advance(5 * MINUTE)
    world.sweep()
    (text,) = world.messages("NotReady")
    assert ("is paused" if paused else "has no nodes removed for being empty") in text
