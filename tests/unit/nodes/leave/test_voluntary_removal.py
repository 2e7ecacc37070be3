"""Voluntary removals look first."""

import itertools
from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.nodes.leave.voluntary_removal import (
    RemovalOutcome,
    record_blockers,
    remove_voluntarily,
    uncordon,
)
from shared.ports import NodeChange, TimerKind
from tests.builders import NOW, budget, node, pod, provisioner
from tests.unit.nodes.leave.replacements import half_empty, joined, state_of, step
from tests.unit.worlds import MINUTE, World, instead, moving_in

HELD = {keys.DO_NOT_EVICT: "true"}


def world_with(*values: Any, **changes: Any) -> World:
    return World(provisioner(), node(**changes), *values)


def test_blocked_node_is_kept_and_reported_with_its_time() -> None:
    world = world_with(pod(node_name="n1", annotations=HELD))
    assert remove_voluntarily(world.ports, world.node, "expiration") == RemovalOutcome.BLOCKED
    assert not world.node.unschedulable
    assert world.node.deletion_at is None
    text = world.node.annotations[keys.DISRUPTION_BLOCKED]
    assert text == (
        f"expiration since {NOW.isoformat(timespec='seconds')}: "
        f"pod default/a has the annotation {keys.DO_NOT_EVICT}"
    )
    world.advance(MINUTE)
    assert remove_voluntarily(world.ports, world.node, "expiration") == RemovalOutcome.BLOCKED
    assert world.node.annotations[keys.DISRUPTION_BLOCKED] == text
    assert len(world.messages("DisruptionBlocked")) == 1
    assert world.outbox.timers == []


def test_budget_that_allows_no_eviction_blocks_the_drain_until_it_does() -> None:
    world = world_with(pod(node_name="n1"), budget(0))
    assert remove_voluntarily(world.ports, world.node, "drift") == RemovalOutcome.BLOCKED
    assert world.messages("DisruptionBlocked") == [
        "drift leaves it alone for now: PodDisruptionBudget web holds pod default/a"
    ]
    world.cluster.add(budget(1))
    assert remove_voluntarily(world.ports, world.node, "drift") == RemovalOutcome.REMOVED
    assert keys.DISRUPTION_BLOCKED not in world.node.annotations
    assert world.node.annotations[keys.REMOVAL_REASON] == "drift"
    assert world.node.deletion_at is not None
    assert world.node.unschedulable
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1


def test_many_are_named_by_the_first_three() -> None:
    world = world_with(*(pod(f"p{n}", node_name="n1", annotations=HELD) for n in range(4)))
    assert len(record_blockers(world.ports, world.node, "consolidation")) == 4
    assert world.node.annotations[keys.DISRUPTION_BLOCKED].endswith(" …")
    assert len(record_blockers(world.ports, world.node, "consolidation", ())) == 0
    assert keys.DISRUPTION_BLOCKED not in world.node.annotations


def test_an_empty_node_needs_no_look_at_budgets() -> None:
    world = world_with()
    assert remove_voluntarily(world.ports, world.node, "emptiness") == RemovalOutcome.REMOVED
    assert "disruption_budgets" not in world.cluster.reads


def test_a_holder_that_moves_in_before_the_second_look_keeps_the_node() -> None:
    world = world_with()
    moving_in(world, annotations=HELD)
    assert remove_voluntarily(world.ports, world.node, "expiration") == RemovalOutcome.BLOCKED
    assert not world.node.unschedulable
    assert keys.REMOVAL_REASON not in world.node.annotations


def test_pod_bound_meanwhile_may_change_the_callers_decision() -> None:
    world = world_with()
    moving_in(world)
    outcome = remove_voluntarily(
        world.ports, world.node, "emptiness", still_allowed=lambda pods: not pods
    )
    assert outcome == RemovalOutcome.CHANGED
    assert not world.node.unschedulable


def test_a_cordon_of_people_stays_when_the_node_is_left_alone() -> None:
    world = world_with(pod(node_name="n1", annotations=HELD), unschedulable=True)
    assert remove_voluntarily(world.ports, world.node, "expiration") == RemovalOutcome.BLOCKED
    assert world.node.unschedulable


@pytest.mark.parametrize("method", ["change_node", "delete_node"])
def test_a_node_that_is_written_to_meanwhile_is_looked_at_again(method: str) -> None:
    world = world_with()
    world.cluster.fail_next(method, *[ConflictError("written")] * 4)
    assert remove_voluntarily(world.ports, world.node, "expiration") == RemovalOutcome.CHANGED


def test_a_cordon_is_taken_back_on_the_node_as_it_is_now() -> None:
    annotations = {keys.REMOVAL_REASON: "expiration"}
    world = world_with(unschedulable=True, annotations=annotations)
    read = world.node
    world.cluster.change_node(read, NodeChange(set_labels={"a": "b"}))
    uncordon(world.ports, read)
    assert not world.node.unschedulable


def test_a_cordon_of_a_node_that_is_gone_or_another_is_no_matter() -> None:
    annotations = {keys.REMOVAL_REASON: "expiration"}
    world = world_with(unschedulable=True, annotations=annotations)
    read = world.node
    world.cluster.add(node(uid="another", unschedulable=True, annotations=annotations))
    uncordon(world.ports, read)
    assert world.node.unschedulable
    world.cluster.node_values.clear()
    uncordon(world.ports, read)


def test_a_cordon_stays_when_the_node_is_written_to_all_the_time() -> None:
    annotations = {keys.REMOVAL_REASON: "expiration"}
    world = world_with(unschedulable=True, annotations=annotations)
    world.cluster.fail_next("change_node", *[ConflictError("written")] * 4)
    uncordon(world.ports, world.node)
    assert world.node.unschedulable


def test_a_node_that_is_going_keeps_its_cordon() -> None:
    annotations = {keys.REMOVAL_REASON: "expiration"}
    going = NOW + timedelta(seconds=1)
    world = world_with(unschedulable=True, annotations=annotations, deletion_at=going)
    uncordon(world.ports, world.node)
    assert world.node.unschedulable


def blocked_at_the_end() -> tuple[World, Node, dict[str, Any]]:
    """Return a replacement whose old node a budget began to hold just before it was removed."""
    world = half_empty()
    world.provision(look=True)
    fresh = joined(world)
    budgets, asked = world.cluster.disruption_budgets, itertools.count()

    def used_up() -> tuple[PodDisruptionBudget, ...]:
        if next(asked):
            world.cluster.add(budget())
        return budgets()

    instead(world.cluster, "disruption_budgets", used_up)
    state = step(world, state_of(world))
    assert (state["next"], state["wait_seconds"]) == ("wait", 10)
    assert not world.cluster.node_values["big"].unschedulable
    instead(world.cluster, "disruption_budgets", budgets)
    world.cluster.budgets.clear()
    return world, fresh, state


def test_a_node_that_was_open_again_is_removed_only_if_its_pods_still_fit_elsewhere() -> None:
    world, _, state = blocked_at_the_end()
    world.cluster.add(pod("late", node_name="big", cpu=4000, labels={"app": "other"}))
    assert step(world, state)["result"] == "pods came that fit nowhere else"
    big = world.cluster.node_values["big"]
    assert (big.unschedulable, big.deletion_at) == (False, None)


def test_a_node_that_was_open_again_is_removed_only_if_the_new_nodes_still_stand() -> None:
    world, fresh, state = blocked_at_the_end()
    del world.cluster.node_values[fresh.name]
    world.advance(2 * MINUTE)
    assert step(world, state)["result"] == "new nodes did not come"
    assert world.cluster.node_values["big"].deletion_at is None


def test_a_node_that_changed_while_it_was_removed_is_opened_while_pods_hold_it() -> None:
    world = half_empty()
    world.provision(look=True)
    joined(world)
    world.cluster.fail_next("delete_node", ConflictError("written"))
    state = step(world, state_of(world))
    assert world.cluster.node_values["big"].unschedulable
    world.cluster.add(budget())
    state = step(world, state)
    assert (state["next"], state["wait_seconds"]) == ("wait", 10)
    assert not world.cluster.node_values["big"].unschedulable
