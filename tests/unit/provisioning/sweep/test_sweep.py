"""Sweep: whatever events missed is found within a minute, and found only once."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.launches import Instance
from shared.model.errors import (
    CertificateError,
    ConflictError,
    UnauthorizedError,
    UnavailableError,
)
from shared.model.kubernetes.nodes import Node
from shared.model.values import replace
from shared.nodes.leave.termination import Termination
from shared.ports import NodeChange, TimerKind
from shared.provisioning.sweep.sweep import SweepReport
from tests.builders import (
    NOT_READY,
    NOW,
    intent,
    node,
    pod,
    provisioner,
    ref,
    slot,
)
from tests.unit.nodes.launch.launches import open_intent, two_nodes
from tests.unit.provisioning.sweep.settled import machine, settled
from tests.unit.worlds import MINUTE, NAME, SECOND, instead


def test_where_nothing_is_amiss_nothing_is_done() -> None:
    world = settled()
    world.advance(10 * MINUTE)
    assert world.sweep() == SweepReport()
    assert world.outbox.wakes == []
    assert world.outbox.timers == []
    assert world.cluster.calls == []


def test_a_status_that_cannot_be_written_costs_itself_only() -> None:
    world = settled(provisioner("other"), pod("waits", cpu=1500))
    written: list[str] = []

    def set_pool_status(name: str, *_: Any) -> None:
        if name == "default":
            raise ConflictError("a webhook")
        written.append(name)

    instead(world.cluster, "set_pool_status", set_pool_status)
    world.advance(2 * MINUTE)
    assert world.sweep().overdue_pods == 1
    assert written == ["other"]


def test_pods_that_wait_too_long_wake_the_planner() -> None:
    young = pod("young", created_at=NOW + MINUTE)
    promised = pod("promised")
    world = settled(
        pod("old"), young, promised, pod("gated", gated=True), pod("odd", created_at=None)
    )
    one = slot(node_name="n9", instance_id="i-n9", pods=(ref(promised),))
    world.ledger.slot_values[NAME, one.name] = one
    world.advance(61 * SECOND)
    assert world.sweep().overdue_pods == 1
    assert world.outbox.wakes == [(NAME, timedelta(0))]


def test_launches_that_are_due_wake_the_planner() -> None:
    world = settled()
    due = intent(group=0)
    early = intent(group=1, not_before=NOW + MINUTE)
    late = intent(group=2, not_before=NOW)
    for launch in (due, early, late):
        world.ledger.intents[NAME, launch.plan_id, launch.group] = launch
    one = slot()
    world.ledger.slot_values[NAME, one.name] = one
    assert world.sweep().unfinished_launches == 3
    assert world.outbox.wakes == [(NAME, timedelta(0))]


def test_an_abandoned_lease_wakes_the_planner() -> None:
    world = settled()
    world.ledger.acquire(NAME, "crashed", world.clock.now())
    assert world.sweep().unfinished_launches == 0
    world.advance(MINUTE)
    assert world.sweep().unfinished_launches == 1


def test_unknown_machines_are_terminated_once() -> None:
    world = settled()
    world.cloud.add(machine("i-lost"), machine("i-slot0"), machine("i-young"), machine("i-dead"))
    world.cloud.add(machine("i-open", **{keys.TAG_PLAN: "plan-1"}))
    world.cloud.end("i-dead")
    one = slot()
    world.ledger.slot_values[NAME, one.name] = one
    world.ledger.intents[NAME, "plan-1", 0] = intent()
    world.cloud.ec2.instances["i-young"].launched_at = NOW + 5 * MINUTE
    world.advance(100 * SECOND)
    assert world.sweep().orphaned_instances == 1
    (timer,) = world.outbox.timers_of(TimerKind.TERMINATION)
    assert (timer.payload["node"], timer.payload["instance_id"]) == ("", "i-lost")
    assert timer.payload["uid"] == "i-lost"
    world.advance(MINUTE)
    world.sweep()
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1


def test_a_machine_whose_node_only_the_copy_lacks_is_left_alone() -> None:
    world = settled(node("n2"))
    named = replace(machine("i-n2"), private_dns_name="n2")
    world.cloud.add(named, machine("i-lost"))
    world.advance(100 * SECOND)
    left = world.cluster.nodes()[:-1]
    world.cluster.nodes = lambda *_: left  # type: ignore[method-assign]
    assert world.sweep().orphaned_instances == 1
    (timer,) = world.outbox.timers_of(TimerKind.TERMINATION)
    assert timer.payload["instance_id"] == "i-lost"


@pytest.mark.parametrize("state", ["stopping", "stopped"])
def test_a_stopped_machine_without_a_node_is_ended_too(state: str) -> None:
    world = settled()
    world.cloud.add(replace(machine("i-off"), state=state))
    world.advance(100 * SECOND)
    assert world.sweep().orphaned_instances == 1
    (timer,) = world.outbox.timers_of(TimerKind.TERMINATION)
    assert timer.payload["instance_id"] == "i-off"


@pytest.mark.parametrize(("state", "terminated"), [("stopped", 1), ("running", 0)])
def test_a_stopped_machine_is_not_kept_by_a_node_that_only_its_kubelet_made(
    state: str, terminated: int
) -> None:
    world = settled(node("n2", finalizers=()))
    world.cloud.add(replace(machine("i-n2"), state=state))
    world.advance(100 * SECOND)
    assert world.sweep().orphaned_instances == terminated


def test_machines_of_a_launch_that_ends_while_sweep_looks_are_no_orphans() -> None:
    world = two_nodes()
    open_intent(world)
    world.advance(2 * MINUTE)
    read = world.cloud.tagged_instances

    def tagged_instances(tags: Mapping[str, str]) -> tuple[Instance, ...]:
        found = read(tags)
        instead(world.cloud, "tagged_instances", read)
        # Provision adopts both, closes the intent and has not made their Nodes yet.
        world.cluster.fail_next("create_node", UnavailableError("not yet"))
        with pytest.raises(UnavailableError):
            world.provision()
        assert len(world.ledger.slots(NAME)) == 2
        assert world.cluster.nodes() == ()
        return found

    instead(world.cloud, "tagged_instances", tagged_instances)
    assert world.sweep().orphaned_instances == 0
    assert world.ledger.intents == {}


def test_the_end_of_an_orphan_that_fell_silent_is_started_again() -> None:
    world = settled()
    world.cloud.add(machine("i-lost"))
    world.advance(2 * MINUTE)
    world.sweep()
    world.advance(2 * MINUTE)
    world.sweep()
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 2


@pytest.mark.parametrize("ended", [False, True])
def test_slot_whose_node_was_removed_before_a_crash_is_deleted(*, ended: bool) -> None:
    world = settled()
    world.cloud.add(machine("i-slot0"), machine("i-n2"))
    if ended:
        world.cloud.end("i-slot0")
    gone, young = slot(node_name="n9"), slot(number=1, instance_id="i-new", node_name="n8")
    kept = slot(number=2, instance_id="i-n1", node_name="n1")
    world.advance(100 * SECOND)
    for other_slot in (gone, replace(young, launched_at=world.clock.now()), kept):
        world.ledger.slot_values[NAME, other_slot.name] = other_slot
    world.cloud.end("i-n2")
    assert world.sweep().orphaned_instances == 1
    (timer,) = world.outbox.timers_of(TimerKind.TERMINATION)
    assert timer.payload["instance_id"] == "i-slot0"
    state, terminating = timer.payload, Termination(world.ports, None)
    for _ in range(4):
        state = terminating.step(state) if state.get("next") != "done" else state
        world.advance(timedelta(seconds=30))
    assert state["result"] == "gone"
    assert not world.cloud.instances(["i-slot0"])[0].is_alive
    assert gone.name not in {other_slot.name for other_slot in world.ledger.slots(NAME)}


def test_nodes_whose_machine_is_gone_are_deleted() -> None:
    world = settled()
    world.cluster.add(
        node("lost"),
        node("young", created_at=NOW + 5 * MINUTE),
        node("ageless", created_at=None),
        node("foreign", finalizers=()),
        node("going", deletion_at=NOW),
        node("bare", provider_id=""),
        node("shown"),
    )
    # Lists lag behind: this one is found when it is asked for by id.
    world.cloud.add(replace(machine("i-shown"), tags={}))
    world.advance(6 * MINUTE)
    report = world.sweep()
    assert report.nodes_without_instance == 1
    assert world.cluster.called("delete_node") == ["lost"]
    assert world.cluster.node_values["lost"].deletion_at is not None


def test_a_lost_node_that_changes_does_not_stop_the_sweep() -> None:
    world = settled(pod("old"))
    world.cluster.add(node("lost"))
    world.cluster.fail_next("delete_node", ConflictError("written"))
    world.advance(2 * MINUTE)
    report = world.sweep()
    assert (report.nodes_without_instance, report.overdue_pods) == (1, 1)
    assert world.cluster.node_values["lost"].deletion_at is None


def test_a_node_whose_changes_are_refused_does_not_keep_the_others() -> None:
    stale: dict[str, Any] = {
        "unschedulable": True,
        "annotations": {keys.REMOVAL_REASON: "drift"},
    }
    names = ("empty-1", "empty-2", "lost-1", "lost-2")
    world = settled(
        *map(node, names),
        node("stale-1", **stale),
        node("stale-2", **stale),
        node("z", deletion_at=NOW),
        pod("on-1", node_name="stale-1"),
        pod("on-2", node_name="stale-2"),
        owner=provisioner(ttl_after_empty=30 * SECOND),
    )
    for name in ("empty-1", "empty-2", "stale-1", "stale-2", "z"):
        world.cloud.add(machine(f"i-{name}"))
    world.advance(10 * MINUTE)
    original = world.cluster.change_node

    def change_node(read: Node, change: NodeChange) -> Node:
        if read.name.endswith("-1"):
            raise UnauthorizedError(f"change node {read.name}: 403 denied by a webhook")
        return original(read, change)

    instead(world.cluster, "change_node", change_node)
    report = world.sweep()
    assert (report.nodes_without_instance, report.stale_timers, report.refused_nodes) == (2, 1, 3)
    assert world.cluster.node_values["lost-2"].deletion_at is not None
    assert not world.cluster.node_values["stale-2"].unschedulable
    started = [(timer.kind, timer.payload["node"]) for timer in world.outbox.timers]
    assert (TimerKind.TERMINATION, "z") in started
    assert (TimerKind.EMPTINESS, "empty-2") in started


def test_a_certificate_that_is_not_valid_ends_the_sweep() -> None:
    world = settled()
    world.cluster.add(node("lost"))
    world.advance(10 * MINUTE)
    world.cluster.fail_next("change_node", CertificateError("expired"))
    with pytest.raises(CertificateError):
        world.sweep()


def test_drains_are_started_first() -> None:
    world = settled(owner=provisioner(ttl_after_empty=30 * SECOND))
    world.cluster.add(node("a"), node("z", deletion_at=NOW))
    for name in ("a", "z"):
        world.cloud.add(machine(f"i-{name}"))
    world.sweep()
    kinds = [timer.kind for timer in world.outbox.timers]
    assert kinds == [TimerKind.TERMINATION, TimerKind.EMPTINESS]


def test_ready_nodes_that_are_not_initialized_wake_bind() -> None:
    world = settled()
    world.cluster.add(
        node("waits", taints=(NOT_READY,)),
        node("open"),
        node("boots", taints=(NOT_READY,), ready=None),
        node("foreign", taints=(NOT_READY,), finalizers=()),
        node("going", taints=(NOT_READY,), deletion_at=NOW),
    )
    assert world.sweep().unbound_nodes == 2
    assert world.outbox.binds == [(NAME, ("open", "waits"))]


def test_old_launch_templates_are_collected() -> None:
    world = settled()
    world.cloud.ensure_launch_template("old", {})
    world.advance(61 * MINUTE)
    world.cloud.ensure_launch_template("new", {})
    assert world.sweep().unused_templates == 1
    assert [name for name, _ in world.cloud.launch_templates()] == ["new"]


# --- timers


def test_a_look_over_the_nodes_is_asked_for_when_one_may_be_due() -> None:
    world = settled()
    world.sweep()
    assert world.outbox.evaluations == []
    world.cluster.add(provisioner(consolidation=True))
    world.sweep()
    assert world.outbox.evaluations == [NAME]
