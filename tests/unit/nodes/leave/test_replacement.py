"""Replacement: from the timer's start to the last node that is gone."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.brakes import Brakes
from shared.model.errors import (
    ConflictError,
    InvalidMessageError,
    NotFoundError,
    ThrottledError,
    UnavailableError,
)
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from shared.nodes.leave.replacement import REPLACED, Replacement, start_replacement
from shared.nodes.timers.heartbeats import last_heartbeats
from shared.nodes.timers.node_timer import MAX_STEPS
from shared.ports import NodeChange, TimerKind
from tests.builders import affinity, budget, instance_type, node_of, pod, provisioner, selector
from tests.unit.nodes.leave.replacements import (
    HOUR,
    half_empty,
    joined,
    state_of,
    step,
)
from tests.unit.worlds import MINUTE, NAME, SECOND, World, failing, instead

PLACES = (("a", "one"), ("b", "two"))


def move_pods(world: World, to: str) -> None:
    """Let the drain have its way."""
    for name in list(world.cluster.pods):
        world.cluster.pods[name] = replace(world.cluster.pods[name], node_name=to)
    gone = world.cluster.node_values.pop("big")
    assert gone.deletion_at is not None


def two_nodes_for_one() -> World:
    """Return a world with two nodes, whose pods fit one of them."""
    world = World(
        provisioner(consolidation=True),
        node_of("one"),
        node_of("two"),
        *(pod(name, node_name=node) for name, node in PLACES),
    )
    world.advance(HOUR)
    return world


def test_cheaper_node_is_launched_before_the_expensive_one_is_removed() -> None:
    world = half_empty()
    report = world.provision(look=True)
    assert (report.nodes_disrupted, len(world.alive)) == (1, 1)
    assert world.messages("Disrupted") == [
        "consolidation: saves at least $0.2880/h; 1 node removed, 1 new node first"
    ]
    state = state_of(world)
    assert (state["remove"], state["new_nodes"]) == ((("big", "uid-big"),), 1)
    # It waits, and nothing happens to the old node.
    state = step(world, state)
    assert (state["next"], world.cluster.node_values["big"].unschedulable) == ("wait", False)
    fresh = joined(world)
    assert fresh.annotations[keys.REPLACES] == "big"
    state = step(world, state)
    old = world.cluster.node_values["big"]
    assert old.deletion_at is not None
    assert old.annotations[keys.REMOVAL_REASON] == "consolidation"
    assert (("uid-big", "replacement") in last_heartbeats(world.ledger, NAME)) is True
    # The drain is another timer's.
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1
    state = step(world, state)
    assert state["next"] == "wait"
    move_pods(world, fresh.name)
    state = step(world, state)
    assert (state["next"], state["result"]) == ("done", "replaced")
    assert keys.REPLACES not in world.cluster.node_values[fresh.name].annotations
    assert ("uid-big", REPLACED) in last_heartbeats(world.ledger, NAME)


def test_new_nodes_that_do_not_come_leave_everything_as_it_was() -> None:
    world = half_empty()
    world.provision(look=True)
    state = state_of(world)
    world.advance(10 * MINUTE)
    state = step(world, state)
    assert state["next"] == "wait"
    world.advance(SECOND)
    state = step(world, state)
    assert (state["next"], state["result"]) == ("done", "new nodes did not come")
    assert not world.cluster.node_values["big"].unschedulable
    assert ("uid-big", "replacement") not in last_heartbeats(world.ledger, NAME)
    assert ("uid-big", REPLACED) in last_heartbeats(world.ledger, NAME)


@pytest.mark.parametrize(
    ("error", "span"),
    [
        pytest.param(ThrottledError("rate"), timedelta(0), id="it does not run"),
        pytest.param(
            UnavailableError("time-out"), 3 * MINUTE, id="it may run, but is not heard of"
        ),
    ],
)
def test_a_replacement_whose_timer_did_not_start_holds_back_none_for_long(
    error: Exception, span: timedelta
) -> None:
    world = half_empty()
    world.outbox.fail_next(error)
    with pytest.raises(type(error)):
        world.provision(look=True)
    assert world.ledger.intents == {}
    world.advance(span)
    world.provision(look=True)
    assert len(world.outbox.timers_of(TimerKind.REPLACEMENT)) == (0 if span else 1)
    world.advance(SECOND)
    world.provision(look=True)
    assert len(world.outbox.timers_of(TimerKind.REPLACEMENT)) == 1


def test_launch_without_instances_is_abandoned_after_a_minute() -> None:
    world = half_empty()
    start_replacement(
        world.ports, "plan-x", [world.node], 1, "consolidation", registration=5 * MINUTE
    )
    state = step(world, state_of(world))
    assert state["next"] == "wait"
    world.advance(MINUTE + SECOND)
    assert step(world, state)["result"] == "new nodes did not come"


def test_a_launch_that_brings_no_node_is_not_waited_for() -> None:
    world = half_empty()
    world.cloud.delays.shown = HOUR
    world.provision(look=True)
    state = state_of(world)
    world.advance(6 * MINUTE)
    state = step(world, state)
    assert state["next"] == "wait"
    world.advance(SECOND)
    assert step(world, state)["result"] == "new nodes did not come"


def test_bare_metal_is_waited_for_until_it_has_joined() -> None:
    metal = instance_type("m5.metal", price=4_608_000)
    world = World(
        provisioner(ttl_until_expired=HOUR),
        node_of("big", metal),
        pod("a", node_name="big", cpu=1000),
        types=(metal,),
    )
    world.advance(HOUR)
    world.provision(look=True)
    state = state_of(world)
    (new,) = (node for node in world.cluster.nodes() if node.name != "big")
    for minutes in (7, 17):
        world.advance(minutes * MINUTE)
        state = step(world, state)
        assert state["next"] == "wait"
    assert world.cluster.node_values["big"].deletion_at is None
    world.kubelet_joins(
        new.name,
        capacity=metal.capacity,
        allocatable=metal.allocatable,
        ready_changed_at=world.clock.now(),
    )
    world.bind(new.name)
    # The pods that hold it now have not held it since the change began.
    world.cluster.add(budget())
    state = step(world, state)
    assert state["next"] == "wait"
    world.cluster.budgets.clear()
    step(world, state)
    assert world.cluster.node_values["big"].deletion_at is not None


def test_a_startup_taint_that_goes_late_is_waited_for() -> None:
    starting = Taint(key="example.com/agent", effect=Effect.NO_SCHEDULE)
    world = half_empty()
    world.cluster.add(provisioner(consolidation=True, startup_taints=(starting,)))
    world.provision(look=True)
    state = state_of(world)
    world.advance(MINUTE)
    fresh = joined(world, taints=(starting,))
    assert not fresh.is_initialized
    world.advance(7 * MINUTE)
    state = step(world, state)
    assert state["next"] == "wait"
    assert joined(world, taints=()).is_initialized
    step(world, state)
    assert world.cluster.node_values["big"].deletion_at is not None


def test_a_longer_time_to_join_is_waited_for() -> None:
    world = half_empty()
    world.policy = replace(world.policy, registration_timeout=15 * MINUTE)
    world.provision(look=True)
    world.advance(14 * MINUTE)
    assert step(world, state_of(world))["next"] == "wait"


def test_pods_that_hold_a_node_are_waited_for_and_then_it_is_left_alone() -> None:
    world = half_empty()
    world.provision(look=True)
    fresh = joined(world)
    hold = PodDisruptionBudget(
        namespace="default", name="web", selector=selector(app="web"), disruptions_allowed=0
    )
    world.cluster.add(hold)
    state = step(world, state_of(world))
    assert (state["next"], state["wait_seconds"]) == ("wait", 10)
    assert not world.cluster.node_values["big"].unschedulable
    assert world.messages("DisruptionBlocked") != []
    world.advance(13 * MINUTE)
    state = step(world, state)
    assert state["result"] == "pods hold it"
    assert world.cluster.node_values["big"].deletion_at is None
    assert keys.REPLACES not in world.cluster.node_values[fresh.name].annotations


def test_node_whose_pods_fit_elsewhere_is_removed_without_a_launch() -> None:
    world = two_nodes_for_one()
    assert world.provision(look=True).nodes_disrupted == 1
    assert world.alive == []
    state = state_of(world)
    assert (state["new_nodes"], state["wait_seconds"]) == (0, 0)
    step(world, state)
    going = [node.name for node in world.cluster.nodes() if node.deletion_at is not None]
    assert going == [state["node"]]


def test_a_step_that_dies_while_it_reads_the_cluster_has_cordoned_nothing() -> None:
    world = two_nodes_for_one()
    world.provision(look=True)
    instead(world.cluster, "bound_pods", failing(TimeoutError("the function's time is over")))
    with pytest.raises(TimeoutError):
        step(world, state_of(world))
    assert not any(node.unschedulable for node in world.cluster.nodes())


def test_pods_that_came_with_the_cordon_are_looked_at_once_more() -> None:
    world = two_nodes_for_one()
    world.provision(look=True)
    state = state_of(world)
    original = world.cluster.change_node

    def change_node(node: Node, change: NodeChange) -> Node:
        if change.unschedulable:
            world.cluster.add(pod("late", node_name=node.name, cpu=1400))
        return original(node, change)

    instead(world.cluster, "change_node", change_node)
    assert step(world, state)["result"] == "pods came that fit nowhere else"
    assert not any(node.unschedulable for node in world.cluster.nodes())


@pytest.mark.parametrize(("rule", "goes"), [("affinity", True), ("anti_affinity", False)])
def test_a_rule_about_labelled_namespaces_is_kept_at_the_removal(*, rule: str, goes: bool) -> None:
    world = two_nodes_for_one()
    world.provision(look=True)
    world.cluster.namespace_labels["default"] = {"tier": "gold"}
    term = affinity(namespace_selector=selector(tier="gold"))
    world.cluster.add(*(pod(n, node_name=on, **{rule: (term,)}) for n, on in PLACES))
    assert (step(world, state_of(world))["next"] == "wait") is goes


def test_a_brake_that_is_set_meanwhile_stops_a_replacement() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    ports = replace(world.ports, brakes=Brakes(paused=True))
    assert Replacement(ports).step(state_of(world))["result"] == "held back"
    world.cluster.add(provisioner(consolidation=True, paused=True))
    assert step(world, state_of(world))["result"] == "held back"


def test_a_node_that_changes_is_looked_at_again_in_a_second() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    world.cluster.fail_next("change_node", *[ConflictError("written")] * 4)
    assert step(world, state_of(world))["wait_seconds"] == 1
    world.cluster.fail_next("delete_node", ConflictError("written"))
    state = step(world, state_of(world))
    assert state["wait_seconds"] == 1
    step(world, state)
    assert world.cluster.node_values["big"].deletion_at is not None


def test_a_node_that_vanishes_meanwhile_is_replaced() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    instead(world.cluster, "node", lambda _: None)
    assert step(world, state_of(world))["wait_seconds"] == 1
    del world.cluster.node_values["big"]
    assert step(world, state_of(world))["result"] == "replaced"


def test_very_long_drain_continues_in_another_execution() -> None:
    world = half_empty()
    world.provision(look=True)
    state = {**state_of(world), "steps": MAX_STEPS - 1}
    world.advance(MINUTE)
    assert step(world, state)["result"] == "continued in another execution"
    second = world.outbox.timers_of(TimerKind.REPLACEMENT)[1]
    assert second.payload["steps"] == 0
    assert second.payload["remove"] == (("big", "uid-big"),)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"remove": 7}, r"remove: Expected `array \| null`, got `int`"),
        ({"since": "yesterday"}, "since: 'yesterday': expected a time"),
    ],
)
def test_a_state_that_cannot_be_read_is_refused(changes: dict[str, Any], text: str) -> None:
    world = half_empty()
    world.provision(look=True)
    with pytest.raises(InvalidMessageError, match=text):
        step(world, {**state_of(world), **changes})


def test_the_mark_of_a_new_node_is_taken_back_at_the_second_try() -> None:
    world = half_empty()
    world.provision(look=True)
    fresh = joined(world)
    world.cluster.fail_next("change_node", ConflictError("written"))
    del world.cluster.node_values["big"]
    step(world, state_of(world))
    assert keys.REPLACES not in world.cluster.node_values[fresh.name].annotations


def test_a_new_node_that_vanishes_meanwhile_does_not_stop_the_end_of_a_change() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    world.cluster.fail_next("change_node", NotFoundError("gone"))
    del world.cluster.node_values["big"]
    assert step(world, state_of(world))["result"] == "replaced"


def test_a_pod_that_holds_the_last_node_ends_the_change_in_the_end() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    world.cluster.add(pod("a", node_name="big", annotations={keys.DO_NOT_EVICT: "true"}))
    state = step(world, state_of(world))
    assert (state["next"], state["wait_seconds"]) == ("wait", 10)
    world.advance(13 * MINUTE)
    assert step(world, state)["result"] == "pods hold it"


def test_a_state_of_nodes_that_are_others_now_changes_nothing() -> None:
    world = half_empty()
    state = {"cluster": NAME, "node": "big", "uid": "x", "plan_id": "p", "remove": [["big", "x"]]}
    assert step(world, state)["result"] == "replaced"
    assert world.cluster.node_values["big"].deletion_at is None
    assert world.cluster.calls == []


def test_a_new_node_whose_pods_never_came_is_watched_from_then_on() -> None:
    world = half_empty()
    world.provision(look=True)
    fresh = joined(world)
    world.cluster.add(provisioner(ttl_after_empty=MINUTE))
    world.cluster.pods.clear()
    del world.cluster.node_values["big"]
    step(world, state_of(world))
    (timer,) = world.outbox.timers_of(TimerKind.EMPTINESS)
    assert timer.payload["node"] == fresh.name
