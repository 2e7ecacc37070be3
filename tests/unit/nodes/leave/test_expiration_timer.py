"""Expiration and registration timers."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.node_budgets import NodeBudget
from shared.model.resources import Resources
from shared.model.timer_state import whole_seconds
from shared.nodes.join.registration import Registration
from shared.nodes.leave.expiration_timer import Expiration
from shared.nodes.timers.heartbeats import last_heartbeats, save_heartbeat
from shared.nodes.timers.node_timer import MAX_STEPS
from shared.nodes.timers.timers import start_expiration, timer_name
from shared.ports import TimerKind
from tests.builders import (
    NOT_READY,
    NOW,
    instance,
    node,
    offering,
    pod,
    pods,
    provisioner,
    ref,
    slot,
)
from tests.unit.nodes.leave.termination import drains
from tests.unit.worlds import MINUTE, NAME, SECOND, World, moving_in

HOUR = timedelta(hours=1)
STATE = {"cluster": NAME, "node": "n1", "uid": "uid-n1", "since": NOW.isoformat()}
JOB = ControllerRef(kind="Job", name="j", uid="j")


def expire(world: World) -> dict[str, Any]:
    return Expiration(world.ports).step(STATE)


def test_a_node_is_removed_when_it_is_old_enough() -> None:
    world = World(provisioner(ttl_until_expired=HOUR), node())
    world.advance(HOUR - 10 * SECOND)
    assert expire(world)["wait_seconds"] == 10
    world.advance(10 * SECOND)
    save_heartbeat(world.ledger, NAME, "uid-n1", TimerKind.EXPIRATION, NOW)
    assert expire(world)["result"] == "removed"
    assert world.node.deletion_at is not None
    assert world.node.annotations[keys.REMOVAL_REASON] == "expiration"
    assert last_heartbeats(world.ledger, NAME).keys() == {("uid-n1", "termination")}


def test_a_node_with_pods_waits_for_its_replacement_which_is_asked_for_once() -> None:
    world = World(provisioner(ttl_until_expired=HOUR), node(), pod(node_name="n1"))
    world.advance(HOUR)
    state = expire(world)
    assert (state["next"], state["wait_seconds"], state["steps"]) == ("wait", 60, 1)
    assert world.outbox.evaluations == [NAME]
    again = Expiration(world.ports).step(state)
    assert again["steps"] == 2
    assert world.outbox.evaluations == [NAME]
    assert world.node.deletion_at is None
    assert not world.node.unschedulable
    assert ("uid-n1", TimerKind.EXPIRATION) in last_heartbeats(world.ledger, NAME)


def test_a_timer_that_waits_for_very_long_leaves_the_rest_to_another() -> None:
    world = World(provisioner(ttl_until_expired=HOUR), node(), pod(node_name="n1"))
    world.advance(HOUR)
    ended = Expiration(world.ports).step({**STATE, "steps": MAX_STEPS - 1})
    assert (ended["next"], ended["result"]) == ("done", "due for long")
    assert last_heartbeats(world.ledger, NAME).keys() == {("uid-n1", "expiration")}


def test_empty_nodes_that_expire_stay_within_the_disruption_budgets() -> None:
    owner = provisioner(ttl_until_expired=HOUR, budgets=(NodeBudget(nodes=1),))
    joined = {"labels": {**node().labels, keys.INITIALIZED: "true"}}
    world = World(owner, node("n1", **joined), node("n2", **joined))
    world.advance(HOUR)
    assert expire(world)["result"] == "removed"
    second = {**STATE, "node": "n2", "uid": "uid-n2"}
    state = Expiration(world.ports).step(second)
    assert (state["next"], state["wait_seconds"], state["steps"]) == ("wait", 60, 1)
    assert world.cluster.node_values["n2"].deletion_at is None
    assert ("uid-n2", TimerKind.EXPIRATION) in last_heartbeats(world.ledger, NAME)
    del world.cluster.node_values["n1"]
    world.advance(3 * MINUTE)
    assert Expiration(world.ports).step(state)["result"] == "removed"
    assert world.node.deletion_at is not None


def test_pod_bound_at_the_last_moment_keeps_the_node_until_it_is_replaced() -> None:
    world = World(provisioner(ttl_until_expired=HOUR), node())
    world.advance(HOUR)
    moving_in(world)
    assert expire(world)["wait_seconds"] == 1
    assert not world.node.unschedulable
    assert expire(world)["wait_seconds"] == 60


@pytest.mark.parametrize(
    ("world", "result"),
    [
        (World(provisioner(ttl_until_expired=HOUR)), "gone"),
        (World(provisioner(ttl_until_expired=HOUR), node(uid="another")), "gone"),
        (World(provisioner(ttl_until_expired=HOUR), node(deletion_at=NOW)), "gone"),
        (World(node()), "may not expire"),
        (World(provisioner(ttl_until_expired=HOUR), node(finalizers=())), "may not expire"),
        (World(provisioner(ttl_until_expired=HOUR, paused=True), node()), "may not expire"),
        (World(provisioner(), node()), "lives for ever"),
    ],
)
def test_nodes_that_do_not_expire_end_their_timer(world: World, result: str) -> None:
    world.advance(2 * HOUR)
    assert expire(world)["result"] == result
    assert world.cluster.calls == []


def test_a_node_that_changes_is_looked_at_again() -> None:
    world = World(provisioner(ttl_until_expired=HOUR), node())
    world.advance(HOUR)
    world.cluster.fail_next("change_node", *[ConflictError("written")] * 4)
    assert expire(world)["wait_seconds"] == 1
    assert world.outbox.timers == []


def test_long_waits_are_cut() -> None:
    world = World(provisioner(ttl_until_expired=timedelta(days=1000)), node())
    assert expire(world)["wait_seconds"] == 300 * 24 * 3600
    assert whole_seconds(timedelta(seconds=-5)) == 0
    assert whole_seconds(timedelta(seconds=0.1)) == 1


def test_the_same_timer_for_the_same_reason_has_the_same_name() -> None:
    name = timer_name(NAME, "uid", TimerKind.EXPIRATION, NOW)
    assert name == timer_name(NAME, "uid", TimerKind.EXPIRATION, NOW + timedelta(microseconds=5))
    others = {
        timer_name("other", "uid", TimerKind.EXPIRATION, NOW),
        timer_name(NAME, "uid2", TimerKind.EXPIRATION, NOW),
        timer_name(NAME, "uid", TimerKind.EMPTINESS, NOW),
        timer_name(NAME, "uid", TimerKind.EXPIRATION, NOW + SECOND),
    }
    assert len({name, *others}) == 5
    assert len(name) <= 80


def test_a_node_without_a_birthday_is_born_now() -> None:
    world = World()
    owner = provisioner(ttl_until_expired=HOUR)
    start_expiration(world.ports, node(created_at=None), owner, world.clock.now())
    assert world.outbox.timers[0].payload["wait_seconds"] == 3600


# --- registration


def register(world: World) -> dict[str, Any]:
    return Registration(world.ports).step(STATE)


def starting(**changes: Any) -> dict[str, Any]:
    return {"ready": None, "allocatable": Resources(), "taints": (NOT_READY,), **changes}


def test_a_machine_that_runs_a_pod_has_joined_whatever_was_read_before() -> None:
    world = World(provisioner(), node(**starting()), pod("early", node_name="n1"))
    assert register(world)["next"] == "wait"
    assert world.cluster.called("evict") == []
    assert world.node.deletion_at is None


def test_a_pod_that_leaves_and_that_no_kubelet_ends_shows_no_machine_that_joined() -> None:
    leaves = pod("leaves", node_name="n1", deletion_at=NOW)
    world = World(provisioner(), node(**starting(taints=())), leaves)
    assert register(world)["result"] == "never joined"


def test_budget_is_respected_when_the_kubelet_joins_during_late_termination() -> None:
    early = pod("early", node_name="n1", phase="Pending")
    world = World(provisioner(), node(**starting()), early)
    world.cluster.budgeted.add(early.key)
    world.cloud.add(instance())
    assert register(world)["result"] == "never joined"
    assert drains.step(world)["next"] == "wait"
    assert world.cluster.called("evict") == [early.key]
    assert early.key in world.cluster.pods
    assert len(world.alive) == 1


def test_machine_that_never_joins_is_terminated() -> None:
    early = pod("early", node_name="n1", phase="Pending")
    bare = pod("bare", node_name="n1", phase="Pending", owner=JOB)
    leaving = pod("leaving", node_name="n1", phase="Pending", deletion_at=NOW)
    daemon = ControllerRef(kind="DaemonSet", name="d", uid="d")
    agent = pod("agent", node_name="n1", phase="Pending", owner=daemon)
    world = World(provisioner(), node(**starting()), early, bare, leaving, agent)
    promised = slot(instance_id="i-n1", node_name="n1", pods=(ref(pod("later")),))
    world.ledger.slot_values[NAME, promised.name] = promised
    assert register(world)["result"] == "never joined"
    assert world.ledger.slots(NAME) == ()
    assert world.node.deletion_at is not None
    assert world.ledger.unavailable_offerings(world.clock.now(), NAME) == {offering()}
    assert world.ledger.unavailable_offerings(world.clock.now()) == frozenset()
    assert world.outbox.wakes == [(NAME, timedelta(0))]
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1
    ((said, _),) = world.cluster.kube_events.items()
    assert (said.reason, said.name) == ("NeverJoined", "n1")


def test_node_that_changes_during_late_termination_is_recorded_once() -> None:
    world = World(provisioner(), node(**starting()))
    world.cluster.fail_next("delete_node", ConflictError("written"))
    assert register(world)["wait_seconds"] == 1
    assert world.ledger.unavailable_offerings(world.clock.now(), NAME) == frozenset()
    assert register(world)["result"] == "never joined"
    assert len(world.ledger.written("mark_unavailable")) == 1


def test_slots_of_other_machines_stay() -> None:
    world = World(provisioner(), node(**starting()))
    other = slot(instance_id="i-other")
    world.ledger.slot_values[NAME, other.name] = other
    register(world)
    assert world.ledger.slots(NAME) == (other,)


@pytest.mark.parametrize("missing", [keys.INSTANCE_TYPE, keys.ZONE, keys.CAPACITY_TYPE])
def test_a_node_without_its_labels_blames_no_offering(missing: str) -> None:
    labels = {k: v for k, v in node().labels.items() if k != missing}
    world = World(provisioner(), node(**starting(labels=labels)))
    assert register(world)["result"] == "never joined"
    assert world.ledger.refusals == {}


def test_a_machine_that_joined_and_is_not_complete_wakes_bind() -> None:
    world = World(provisioner(), node(taints=(NOT_READY,)))
    world.advance(HOUR)
    state = register(world)
    assert (state["next"], state["wait_seconds"]) == ("wait", 30)
    assert world.outbox.binds == [(NAME, ("n1",))]
    assert last_heartbeats(world.ledger, NAME)["uid-n1", "registration"] == world.clock.now()


@pytest.mark.parametrize(
    ("ready", "on_it"),
    [(True, ()), (None, (pod("early", node_name="n1"),))],
    ids=["closed", "runs"],
)
def test_a_registration_that_looks_for_very_long_leaves_the_rest_to_another(
    ready: bool | None,  # noqa: FBT001 -- a column of the table
    on_it: tuple[Pod, ...],
) -> None:
    world = World(provisioner(), node(**starting(ready=ready)), *on_it)
    first = register(world)
    assert first["steps"] == 1
    ended = Registration(world.ports).step({**first, "steps": MAX_STEPS - 1})
    assert (ended["next"], ended["result"]) == ("done", "looked for long")
    world.cloud.add(instance())
    world.advance(10 * MINUTE)
    assert world.sweep().missing_timers == 1


@pytest.mark.parametrize(
    ("world", "result"),
    [
        (World(), "gone"),
        (World(node(uid="another")), "gone"),
        (World(node(deletion_at=NOW)), "gone"),
        (World(node(finalizers=())), "joined"),
        (World(node()), "joined"),
    ],
)
def test_a_machine_that_joined_or_is_gone_ends_the_timer(world: World, result: str) -> None:
    save_heartbeat(world.ledger, NAME, "uid-n1", TimerKind.REGISTRATION, NOW)
    assert register(world)["result"] == result
    assert last_heartbeats(world.ledger, NAME) == {}


def test_pods_bound_early_come_back_and_are_planned_again() -> None:
    """The whole way: launched, bound early, never joined, terminated."""
    world = World(provisioner(), *pods(2))
    world.provision()
    name = world.node.name
    timer = world.outbox.timers_of(TimerKind.REGISTRATION)[0]
    world.advance(timedelta(minutes=5))
    assert Registration(world.ports).step(timer.payload)["result"] == "never joined"
    drains.step(world)
    assert world.cluster.called("evict") == ["default/p000", "default/p001"]
    world.cluster.kubelets_stop_pods()
    world.cluster.add(*pods(2, "again"))
    world.provision()
    assert {node for pod, node in world.bound.items()} != {name}
    assert len(world.bound) == 2
