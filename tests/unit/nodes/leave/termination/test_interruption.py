"""Interruptions: AWS takes a machine."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.errors import ConflictError, UnavailableError
from shared.model.kubernetes.nodes import Node
from shared.model.messages.notices import Notice, NoticeKind
from shared.nodes.leave.interruption import Interruption, NodeIndex
from shared.nodes.leave.node_deletion import is_voluntary
from shared.ports import TimerKind
from tests.builders import NOW, instance, node, offering, pod, provisioner, ref, slot
from tests.unit.nodes.leave.termination.drains import DAEMON
from tests.unit.worlds import NAME, SECOND, World, failing, instead


def interrupt(world: World, kind: NoticeKind, state: str = "", instance: str = "i-n1") -> str:
    notice = Notice(kind=kind, instance_ids=(instance,), state=state)
    return Interruption(world.ports).run(notice, instance).action


def in_turn(*answers: Callable[[str], Any]) -> Callable[[str], Any]:
    waiting = list(answers)

    def answer(name: str) -> Any:
        return waiting.pop(0)(name)

    return answer


def running(**changes: Any) -> World:
    world = World(provisioner(), node(**changes), pod(node_name="n1"))
    spot = offering(capacity_type=CapacityType.SPOT)
    world.cloud.add(instance(offering=spot))
    return world


def test_a_spot_warning_drains_the_node_and_remembers_the_offering() -> None:
    world = running()
    assert interrupt(world, NoticeKind.SPOT_INTERRUPTION) == "drained"
    assert world.node.deletion_at is not None
    assert world.node.annotations[keys.REMOVAL_REASON] == "spot-interruption"
    assert not is_voluntary(world.node)
    spot = offering(capacity_type=CapacityType.SPOT)
    assert world.ledger.unavailable_offerings(world.clock.now()) == {spot}
    assert world.outbox.evaluations == [NAME]
    assert world.outbox.plans_at_once == [(NAME, True, False)]
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1
    assert [kube_event.reason for kube_event in world.cluster.kube_events] == ["Interrupted"]


def test_the_deadline_of_a_drain_counts_from_when_ec2_gave_the_warning() -> None:
    world = running()
    warned = world.clock.now() - 30 * SECOND
    notice = Notice(kind=NoticeKind.SPOT_INTERRUPTION, instance_ids=("i-n1",), at=warned)
    Interruption(world.ports).run(notice, "i-n1")
    due = (warned + 90 * SECOND).isoformat()
    assert world.node.annotations[keys.DRAIN_DEADLINE] == due


def test_a_machine_of_a_capacity_reservation_is_drained_before_it_is_taken_back() -> None:
    world = World(provisioner(), node(), pod(node_name="n1"))
    world.cloud.add(instance())
    assert interrupt(world, NoticeKind.RESERVATION_INTERRUPTION) == "drained"
    assert world.node.annotations[keys.REMOVAL_REASON] == "capacity-reservation-interruption"
    assert world.node.annotations[keys.DRAIN_DEADLINE] == (NOW + 90 * SECOND).isoformat()
    assert world.messages("Interrupted") == [
        "capacity-reservation-interruption: drained and replaced"
    ]
    # EC2 still sells such machines outside of the reservation.
    assert world.ledger.unavailable_offerings(world.clock.now()) == frozenset()


@pytest.mark.parametrize(
    ("kind", "state", "action"),
    [
        (NoticeKind.STATE_CHANGE, "stopping", "drained"),
        (NoticeKind.STATE_CHANGE, "terminated", "drained"),
        (NoticeKind.STATE_CHANGE, "running", "ignored"),
        (NoticeKind.SCHEDULED_CHANGE, "", "drained"),
    ],
)
def test_each_notice_has_its_answer(kind: NoticeKind, state: str, action: str) -> None:
    world = running()
    assert interrupt(world, kind, state) == action
    assert (world.node.deletion_at is not None) == (action == "drained")
    assert world.ledger.refusals == {}


def test_node_that_is_being_deleted_is_still_deleted() -> None:
    world = running(deletion_at=NOW, labels={keys.PROVISIONER_NAME: "default"})
    assert interrupt(world, NoticeKind.STATE_CHANGE, "stopping") == "draining"
    assert world.cluster.calls == []
    assert interrupt(world, NoticeKind.SPOT_INTERRUPTION) == "draining"
    assert world.cluster.called("delete_node") == []
    assert world.node.annotations[keys.DRAIN_DEADLINE] == (NOW + 90 * SECOND).isoformat()
    # Its labels say nothing of its machine, EC2 does.
    spot = offering(capacity_type=CapacityType.SPOT)
    assert world.ledger.unavailable_offerings(NOW) == {spot}


def test_a_node_that_changes_is_removed_at_the_second_try_or_the_notice_comes_again() -> None:
    world = running()
    world.cluster.fail_next("delete_node", ConflictError("written"))
    assert interrupt(world, NoticeKind.SPOT_INTERRUPTION) == "drained"
    assert world.node.deletion_at is not None
    world = running()
    world.cluster.fail_next("delete_node", *[ConflictError("written")] * 4)
    with pytest.raises(ConflictError, match="node n1 changes too fast"):
        interrupt(world, NoticeKind.SPOT_INTERRUPTION)


@pytest.mark.parametrize("second", [None, node(labels={})], ids=["gone", "without its owner"])
def test_a_node_that_is_not_ours_at_the_second_look_is_left_alone(second: Node | None) -> None:
    world = running()
    read = world.cluster.node
    world.cluster.fail_next("delete_node", ConflictError("written"))
    instead(world.cluster, "node", in_turn(read, lambda _: second, lambda _: second))
    assert interrupt(world, NoticeKind.SPOT_INTERRUPTION) == "ignored"
    assert world.outbox.plans_at_once == []


@pytest.mark.parametrize(
    ("kind", "state", "action"),
    [
        (NoticeKind.SPOT_INTERRUPTION, "", "planned again"),
        (NoticeKind.RESERVATION_INTERRUPTION, "", "planned again"),
        (NoticeKind.STATE_CHANGE, "shutting-down", "planned again"),
        (NoticeKind.STATE_CHANGE, "pending", "ignored"),
        (NoticeKind.SCHEDULED_CHANGE, "", "ignored"),
    ],
)
def test_a_machine_that_ends_before_it_is_a_node_frees_its_pods(
    kind: NoticeKind, state: str, action: str
) -> None:
    world = World(provisioner())
    waiting = (slot(0, node_name="known"), slot(1, pods=(ref(pod()),)))
    world.ledger.slot_values.update({(NAME, other_slot.name): other_slot for other_slot in waiting})
    assert interrupt(world, kind, state, "i-slot1") == action
    # Of a machine that died provision reads why, and frees its pods; of one that dies we do.
    known, ending = world.ledger.slots(NAME)
    assert known == waiting[0]
    assert (ending.pods == ()) == kind.is_warning
    assert bool(world.ledger.refusals) == (kind == NoticeKind.SPOT_INTERRUPTION)
    assert len(world.outbox.wakes) == (1 if action == "planned again" else 0)


@pytest.mark.parametrize("state", ["stopping", "stopped"])
def test_a_machine_that_is_stopped_before_it_is_a_node_is_terminated(state: str) -> None:
    world = World(provisioner())
    world.cloud.add(instance("i-slot1", state=state))
    interrupt(world, NoticeKind.STATE_CHANGE, state, "i-slot1")
    (seen,) = world.cloud.instances(["i-slot1"])
    assert seen.is_terminating


def test_a_stopped_instance_whose_node_lost_its_owner_label_is_left_to_sweep() -> None:
    world = running(labels={})
    world.cloud.add(instance(state="stopped"))
    assert interrupt(world, NoticeKind.STATE_CHANGE, "stopped") == "ignored"
    (seen,) = world.cloud.instances(["i-n1"])
    assert not seen.is_terminating


def test_machines_that_are_not_ours_are_left_alone() -> None:
    world = running(finalizers=())
    assert interrupt(world, NoticeKind.SPOT_INTERRUPTION) == "ignored"
    assert interrupt(world, NoticeKind.SPOT_INTERRUPTION, instance="i-foreign") == "ignored"
    assert world.cluster.calls == []


@pytest.mark.parametrize("state", ["stopped", "terminated"])
def test_pods_of_a_machine_that_is_off_are_deleted_with_the_notice(state: str) -> None:
    world = running()
    world.cluster.add(pod("agent", node_name="n1", owner=DAEMON))
    world.cloud.add(instance("i-n1", state=state))
    assert interrupt(world, NoticeKind.STATE_CHANGE, state) == "drained"
    assert world.cluster.called("force_delete_pod") == ["default/a"]
    assert world.node.unschedulable


@pytest.mark.parametrize("state", ["stopping", "shutting-down"])
def test_a_machine_that_still_shuts_down_keeps_its_pods(state: str) -> None:
    world = running()
    world.cloud.add(instance("i-n1", state=state))
    assert interrupt(world, NoticeKind.STATE_CHANGE, state) == "drained"
    assert world.cluster.called("force_delete_pod") == []


def test_a_late_notice_of_a_machine_that_was_started_again_deletes_no_pod() -> None:
    world = running()
    world.cloud.add(instance())
    interrupt(world, NoticeKind.STATE_CHANGE, "stopped")
    assert world.cluster.called("force_delete_pod") == []


def test_pods_of_a_node_that_others_write_to_are_left_to_its_drain() -> None:
    world = running(deletion_at=NOW)
    world.cluster.fail_next("change_node", *[ConflictError("written")] * 4)
    assert interrupt(world, NoticeKind.STATE_CHANGE, "terminated") == "draining"
    assert world.cluster.called("force_delete_pod") == []


@pytest.mark.parametrize(
    ("deleted", "kind", "state", "counts"),
    [
        (False, NoticeKind.SPOT_INTERRUPTION, "", True),
        (True, NoticeKind.SPOT_INTERRUPTION, "", True),
        (False, NoticeKind.SCHEDULED_CHANGE, "", True),
        (False, NoticeKind.STATE_CHANGE, "stopping", True),
        (True, NoticeKind.STATE_CHANGE, "shutting-down", False),
        (True, NoticeKind.STATE_CHANGE, "terminated", False),
        (False, NoticeKind.REBALANCE_RECOMMENDATION, "", False),
    ],
)
def test_what_dovetail_terminates_itself_is_no_interruption(
    kind: NoticeKind, state: str, *, deleted: bool, counts: bool
) -> None:
    world = running(deletion_at=NOW if deleted else None)
    notice = Notice(kind=kind, instance_ids=("i-n1",), state=state)
    assert Interruption(world.ports).run(notice, "i-n1").interrupted == counts


def test_the_end_of_a_machine_whose_node_is_gone_is_no_interruption() -> None:
    world = World(provisioner())
    notice = Notice(kind=NoticeKind.STATE_CHANGE, instance_ids=("i-n1",), state="terminated")
    assert not Interruption(world.ports).run(notice, "i-n1").interrupted


def test_a_recommendation_marks_the_node_and_asks_for_a_look() -> None:
    world = running()
    assert interrupt(world, NoticeKind.REBALANCE_RECOMMENDATION) == "recorded"
    assert world.node.annotations[keys.REBALANCE_RECOMMENDED] == NOW.isoformat()
    assert world.node.deletion_at is None
    assert world.outbox.evaluations == [NAME]
    assert world.outbox.plans_at_once == []
    assert world.ledger.unavailable_offerings(NOW) == {offering(capacity_type=CapacityType.SPOT)}
    assert interrupt(world, NoticeKind.REBALANCE_RECOMMENDATION) == "recorded"
    assert world.outbox.evaluations == [NAME]


def test_a_recommendation_is_written_at_the_second_try() -> None:
    world = running()
    world.cluster.fail_next("change_node", ConflictError("written"))
    interrupt(world, NoticeKind.REBALANCE_RECOMMENDATION)
    assert keys.REBALANCE_RECOMMENDED in world.node.annotations
    world = running()
    read = world.cluster.node
    world.cluster.fail_next("change_node", ConflictError("written"))
    instead(world.cluster, "node", in_turn(read, lambda _: None))
    assert interrupt(world, NoticeKind.REBALANCE_RECOMMENDATION) == "recorded"
    assert keys.REBALANCE_RECOMMENDED not in world.node.annotations


def test_of_many_notices_the_nodes_are_listed_once_and_provision_is_called_once() -> None:
    world = World(provisioner(), *(node(f"n{n}") for n in range(9)))
    index = NodeIndex()
    for number in range(9):
        notice = Notice(kind=NoticeKind.SPOT_INTERRUPTION, instance_ids=(f"i-n{number}",))
        Interruption(world.ports, index).run(notice, f"i-n{number}")
    assert world.cluster.reads.count("nodes") == 1
    assert len(world.outbox.evaluations) == 9
    assert world.outbox.plans_at_once == [(NAME, True, False)]
    world.advance(2 * SECOND)
    index.wake_provision(world.ports)
    assert world.outbox.plans_at_once == [(NAME, True, False)] * 2


def test_what_an_index_knows_of_a_node_that_is_another_now_is_forgotten() -> None:
    world = running()
    index = NodeIndex()
    assert index.find(world.ports, "i-n1") is not None
    world.cluster.add(node(provider_id="aws:///us-east-1a/i-other"))
    assert index.find(world.ports, "i-n1") is None
    assert index.find(world.ports, "i-other") is not None


def test_that_provision_cannot_be_called_at_once_is_no_failure() -> None:
    world = running()
    instead(world.outbox, "invoke_provision", failing(UnavailableError("not now")))
    assert interrupt(world, NoticeKind.SPOT_INTERRUPTION) == "drained"
    assert world.outbox.evaluations == [NAME]
