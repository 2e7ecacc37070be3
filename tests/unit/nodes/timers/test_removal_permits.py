"""Removals within disruption budgets, by timers that decide at the same time."""

from datetime import datetime
from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason, NodeBudget
from shared.model.note import Note
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.timers.heartbeats import save_heartbeat
from shared.nodes.timers.removal_permits import may_remove, read_permits, take_permits
from shared.ports import TimerKind
from tests.builders import node, pod, provisioner
from tests.unit.worlds import MINUTE, NAME, SECOND, World, instead

TTL = 30 * SECOND
OWNER = provisioner(ttl_after_empty=TTL, budgets=(NodeBudget(nodes=1),))
EMPTY = DisruptionReason.EMPTY


def joined(name: str) -> Node:
    return node(name, labels={**node(name).labels, keys.INITIALIZED: "true"})


def two(**more: Any) -> World:
    return World(provisioner(ttl_after_empty=TTL, **more), joined("n1"), joined("n2"))


def step(world: World, number: int) -> dict[str, Any]:
    timer = world.outbox.timers_of(TimerKind.EMPTINESS)[number]
    return Emptiness(world.ports).step(timer.payload)


def begun(world: World) -> World:
    for name in ("n1", "n2"):
        Emptiness(world.ports).begin(name)
    world.advance(TTL)
    return world


def going(world: World) -> list[str]:
    found = world.cluster.node_values.values()
    return sorted(value.name for value in found if value.deletion_at is not None)


def test_empty_nodes_go_one_after_the_other_where_the_budget_is_one() -> None:
    world = begun(two(budgets=(NodeBudget(nodes=1),)))
    assert step(world, 0)["result"] == "removed"
    held = step(world, 1)
    assert (held["next"], held["wait_seconds"], held["steps"]) == ("wait", 10, 1)
    assert world.messages("DisruptionBlocked") == [
        "its disruption budgets allow no more empty nodes to be removed now"
    ]
    del world.cluster.node_values["n1"]
    world.advance(3 * MINUTE)
    assert step(world, 1)["result"] == "removed"


def test_a_node_whose_removal_has_not_arrived_yet_is_counted() -> None:
    world = two()
    first, second = world.cluster.node_values["n1"], world.cluster.node_values["n2"]
    assert may_remove(world.ports, OWNER, first, EMPTY)
    assert not may_remove(world.ports, OWNER, second, EMPTY)
    # The same timer again, after a crash.
    assert may_remove(world.ports, OWNER, first, EMPTY)
    world.advance(3 * MINUTE)
    assert may_remove(world.ports, OWNER, second, EMPTY)


def test_of_two_that_count_at_once_one_counts_again() -> None:
    world = two()
    first, second = world.cluster.node_values["n1"], world.cluster.node_values["n2"]

    write = world.ledger.change_note

    def meanwhile(cluster: str, memo: Note, until: datetime) -> bool:
        instead(world.ledger, "change_note", write)
        assert take_permits(world.ports, read_permits(world.ports), [second.uid], world.clock.now())
        return write(cluster, memo, until)

    instead(world.ledger, "change_note", meanwhile)
    assert not may_remove(world.ports, OWNER, first, EMPTY)


def test_who_is_overtaken_again_and_again_removes_nothing_now() -> None:
    world = two()
    instead(world.ledger, "change_note", lambda *_: False)
    assert not may_remove(world.ports, OWNER, world.cluster.node_values["n1"], EMPTY)


def test_a_node_that_is_being_replaced_is_counted() -> None:
    world = two()
    second = world.cluster.node_values["n2"]
    save_heartbeat(world.ledger, NAME, "uid-n1", TimerKind.REPLACEMENT, world.clock.now())
    assert not may_remove(world.ports, OWNER, second, EMPTY)
    world.advance(10 * MINUTE)
    assert may_remove(world.ports, OWNER, second, EMPTY)


def test_a_budget_for_other_reasons_limits_nothing() -> None:
    world = begun(two(budgets=(NodeBudget(nodes=0, reasons=(DisruptionReason.DRIFTED,)),)))
    assert [step(world, number)["result"] for number in (0, 1)] == ["removed", "removed"]


def test_a_timer_that_is_held_for_long_ends_and_sweep_begins_anew() -> None:
    world = begun(two(budgets=(NodeBudget(nodes=0),)))
    state = step(world, 0)
    while state["next"] == "wait":
        world.advance(10 * SECOND)
        state = Emptiness(world.ports).step(state)
    assert (state["result"], state["steps"]) == ("held by a disruption budget", 30)
    world.outbox.timers.clear()
    assert Emptiness(world.ports).begin("n1") == "timer started"
    assert going(world) == []
    world.cluster.add(pod(node_name="n1"))
    assert Emptiness(world.ports).begin("n1") == "not empty"
    assert keys.EMPTINESS_TIMESTAMP not in world.cluster.node_values["n1"].annotations
