"""Termination, step by step."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import (
    CertificateError,
    ConflictError,
    InvalidMessageError,
    UnauthorizedError,
)
from shared.model.kubernetes.taints import Toleration
from shared.model.values import replace
from shared.nodes.leave.node_deletion import is_voluntary, remove_node
from shared.nodes.timers.heartbeats import last_heartbeats
from tests.builders import NOW, node, pod, slot
from tests.unit.nodes.leave.termination.drains import DAEMON, HELD, going, step
from tests.unit.worlds import NAME, SECOND, instead


@pytest.mark.parametrize(("written", "released"), [("96000", 96_000), ("", 0), ("much", 0)])
def test_what_a_node_cost_is_reported_when_its_machine_has_ended(
    written: str, released: int
) -> None:
    world = going(annotations={keys.PRICE: written})
    world.cloud.end("i-n1")
    state = step(world)
    assert (state["result"], state["released_micros_per_hour"]) == ("terminated", released)


def test_a_node_is_cordoned_drained_and_its_machine_ended() -> None:
    world = going(pod(node_name="n1"), pod("agent", node_name="n1", owner=DAEMON))
    state = step(world)
    assert (state["next"], state["wait_seconds"], state["steps"]) == ("wait", 2, 1)
    assert world.node.unschedulable
    assert keys.EXCLUDE_FROM_LOAD_BALANCERS in world.node.labels
    assert world.cluster.called("evict") == ["default/a"]
    world.advance(2 * SECOND)
    step(world, state)
    assert world.cluster.called("evict") == ["default/a"]
    world.cluster.kubelets_stop_pods()
    promised = slot(instance_id="i-n1")
    other = slot(1)
    world.ledger.slot_values.update({(NAME, entry.name): entry for entry in (promised, other)})
    world.ledger.instances["i-n1"] = NAME
    state = step(world, state)
    assert (state["next"], state["result"]) == ("done", "terminated")
    assert world.alive == []
    assert world.cluster.nodes() == ()
    assert world.ledger.slots(NAME) == (other,)
    assert world.ledger.notes(NAME, "going#") == ()
    assert world.ledger.cluster_of("i-n1") is None
    assert last_heartbeats(world.ledger, NAME) == {}


def test_a_budget_holds_the_drain_and_the_node_says_so() -> None:
    members = [pod(name, node_name="n1") for name in "abcd"]
    world = going(*members)
    world.cluster.budgeted.update(member.key for member in members)
    state = step(world)
    assert (state["wait_seconds"], state["blocked"]) == (2, 4)
    text = world.node.annotations[keys.DRAIN_BLOCKED]
    assert text == (
        "since 2026-01-01T00:00:00+00:00 by default/a (a PodDisruptionBudget), "
        "default/b (a PodDisruptionBudget), default/c (a PodDisruptionBudget) and 1 more"
    )
    (said,) = world.events("DrainBlocked")
    assert said.message.endswith(" and 1 more, since 2026-01-01T00:00:00+00:00")
    waits = []
    for _ in range(4):
        world.advance(10 * SECOND)
        state = step(world, state)
        waits.append(state["wait_seconds"])
    assert waits == [4, 8, 10, 10]
    assert world.node.annotations[keys.DRAIN_BLOCKED] == text
    assert world.cluster.kube_events[said] == 1
    world.cluster.budgeted.clear()
    state = step(world, state)
    assert state["wait_seconds"] == 2
    assert "blocked" not in state
    assert keys.DRAIN_BLOCKED not in world.node.annotations


def test_refusal_for_one_pod_blocks_no_other_and_is_reported() -> None:
    world = going(pod("a", node_name="n1"), pod("b", node_name="n1"))
    world.cluster.fail_next("evict", UnauthorizedError("evict pod default/a: 403 policy denies it"))
    step(world)
    assert world.cluster.called("evict") == ["default/a", "default/b"]
    (said,) = world.events("DrainBlocked")
    assert "default/a (evict pod default/a: 403 policy denies it)" in said.message


def test_a_certificate_that_is_not_accepted_ends_the_step() -> None:
    world = going(pod("a", node_name="n1"))
    world.cluster.fail_next("evict", CertificateError("expired"))
    with pytest.raises(CertificateError):
        step(world)


def test_while_a_pod_terminates_the_drain_checks_again_soon() -> None:
    world = going(pod("a", node_name="n1"), pod("b", node_name="n1", deletion_at=NOW + SECOND))
    world.cluster.budgeted.add("default/a")
    assert step(world)["wait_seconds"] == 2


def test_do_not_evict_holds_only_what_we_chose() -> None:
    world = going(pod(node_name="n1", annotations=HELD), reason="emptiness")
    assert is_voluntary(world.node)
    assert step(world)["blocked"] == 1
    assert world.cluster.called("evict") == []
    for reason in ("", "spot-interruption", "registration"):
        world = going(pod(node_name="n1", annotations=HELD), reason=reason)
        step(world)
        assert world.cluster.called("evict") == ["default/a"]


def test_past_the_deadline_pods_are_deleted() -> None:
    world = going(pod(node_name="n1"))
    world.cluster.budgeted.add("default/a")
    step(world, deadline=60 * SECOND)
    assert world.cluster.called("delete_pod") == []
    world.advance(60 * SECOND)
    step(world, deadline=60 * SECOND)
    assert world.cluster.called("delete_pod") == ["default/a"]


def test_a_pod_whose_deletion_is_refused_past_the_deadline_holds_no_machine() -> None:
    world = going(pod("a", node_name="n1"), pod("b", node_name="n1"))
    world.cluster.undeletable.add("default/a")
    world.cluster.budgeted.update(("default/a", "default/b"))
    state = step(world, deadline=60 * SECOND)
    world.advance(60 * SECOND)
    state = step(world, state, deadline=60 * SECOND)
    assert world.cloud.called("terminate") == [], "b is asked to leave, and has its grace period"
    world.cluster.kubelets_stop_pods()
    world.cloud.delays.terminated = 60 * SECOND
    state = step(world, state, deadline=60 * SECOND)
    assert world.cloud.called("terminate") == [("i-n1",)]
    assert (state["next"], world.node.name) == ("wait", "n1"), "a Node outlives its machine"
    refusal = "delete pod default/a: 403 admission webhook denied it"
    assert world.node.annotations[keys.DELETION_REFUSED] == f"default/a ({refusal})"
    told = {
        (event.kind, event.name): event.message
        for event in world.cluster.kube_events
        if event.reason == "DeletionRefused"
    }
    assert told.keys() == {("Node", "n1"), ("Pod", "a")}
    assert all(refusal in message for message in told.values())


def test_undeletable_pod_blocks_its_node_for_minutes_and_not_for_ever() -> None:
    world = going(pod("a", node_name="n1"), pod("b", node_name="n1"))
    world.cluster.undeletable.add("default/a")
    world.cloud.end("i-n1")
    state = step(world)
    assert state["next"] == "wait"
    assert world.cluster.called("force_delete_pod") == ["default/a", "default/b"]
    assert [event.reason for event in world.cluster.kube_events].count("DeletionRefused") == 2
    world.advance(timedelta(minutes=7))
    assert step(world, state)["result"] == "terminated"
    assert world.cluster.nodes() == ()
    assert list(world.cluster.pods) == ["default/a"]


def test_volumes_are_waited_for_while_a_kubelet_can_unmount_them() -> None:
    world = going()
    world.cluster.attachments["n1"] = ("csi-1",)
    assert step(world)["next"] == "wait"
    assert len(world.alive) == 1
    world.kubelet_joins("n1", ready=False)
    state = step(world)
    assert (state["next"], world.alive) == ("wait", [])


def test_pods_of_a_machine_that_is_terminated_are_deleted_and_then_their_node() -> None:
    world = going(pod(node_name="n1"), pod("agent", node_name="n1", owner=DAEMON))
    world.cloud.end("i-n1")
    assert step(world)["result"] == "terminated"
    assert world.cluster.called("evict") == []
    assert world.cluster.nodes() == ()
    writes = [
        (call.method, call.subject) for call in world.cluster.calls if call.method != "happened"
    ]
    assert writes[-2:] == [("change_node", "n1"), ("force_delete_pod", "default/agent")]
    assert ("force_delete_pod", "default/a") in writes[:-2]
    assert "PodsForceDeleted" in {event.reason for event in world.cluster.kube_events}


def test_finalizer_is_removed_from_a_node_without_a_machine() -> None:
    world = going(provider_id="", finalizers=("other", keys.TERMINATION_FINALIZER))
    assert step(world)["result"] == "terminated"
    assert world.node.finalizers == ("other",)


def test_when_the_node_is_gone_its_machine_is_terminated() -> None:
    world = going()
    del world.cluster.node_values["n1"]
    assert step(world)["result"] == "gone"
    assert world.alive == []


def test_an_orphan_has_no_node_and_is_ended() -> None:
    world = going()
    state = {"cluster": NAME, "node": "", "uid": "i-n1", "instance_id": "i-n1", "since": ""}
    step(world, state)
    assert world.alive == []
    assert step(world, {**state, "instance_id": ""})["result"] == "gone"


def test_a_node_of_the_same_name_is_another_one() -> None:
    world = going()
    world.cluster.add(node(uid="another"))
    step(world)
    assert world.cluster.calls == []


@pytest.mark.parametrize(
    ("changes", "result"),
    [({"finalizers": ()}, "not ours"), ({"deletion_at": None}, "not being deleted")],
)
def test_node_that_must_stay_is_not_changed(changes: dict[str, Any], result: str) -> None:
    world = going()
    world.cluster.add(node(**{"deletion_at": NOW, **changes}))
    assert step(world)["result"] == result
    assert world.cluster.calls == []
    assert len(world.alive) == 1


def test_a_time_that_cannot_be_read_is_refused() -> None:
    world = going()
    world.cluster.attachments["n1"] = ("csi-1",)
    with pytest.raises(InvalidMessageError, match="volumes_since: 'soon': expected a time"):
        step(world, volumes_since="soon")


def test_volumes_that_are_not_detached_are_reported_and_then_left() -> None:
    world = going()
    world.cluster.attachments["n1"] = ("csi-1", "csi-2", "csi-3", "csi-4")
    state = step(world)
    assert [event.reason for event in world.cluster.kube_events] == ["Cordoned"]
    world.advance(40 * SECOND)
    state = step(world, state)
    (said,) = [event for event in world.cluster.kube_events if event.reason != "Cordoned"]
    assert said.reason == "VolumesAttached"
    assert said.message == "csi-1, csi-2, csi-3 and 1 more: still attached to a drained node"
    world.advance(timedelta(minutes=6))
    state = step(world, state)
    assert world.alive == []
    for _ in range(2):
        world.advance(2 * SECOND)
        state = step(world, state)
        assert state["next"] == "wait"
    assert keys.OUT_OF_SERVICE_TAINT in [taint.key for taint in world.node.taints]
    world.advance(timedelta(minutes=6))
    assert step(world, state)["result"] == "terminated"


def test_node_is_removed_once_its_volumes_are_detached_by_force() -> None:
    world = going()
    world.cloud.end("i-n1")
    world.cluster.attachments["n1"] = ("csi-1",)
    state = step(world)
    assert state["next"] == "wait"
    world.cluster.attachments.clear()
    world.advance(2 * SECOND)
    assert step(world, state)["result"] == "terminated"


def test_a_pod_that_tolerates_every_taint_stays_until_its_machine_is_terminated() -> None:
    tolerant = pod(node_name="n1", tolerations=(Toleration(operator="Exists"),))
    world = going(tolerant)
    world.cloud.delays.terminated = 60 * SECOND
    state = step(world)
    for _ in range(20):
        assert state["next"] == "wait"
        assert world.cluster.called("force_delete_pod") == []
        world.advance(3 * SECOND)
        state = step(world, state)
    assert state["result"] == "terminated"
    assert world.cluster.pods == {}


def test_a_machine_that_shuts_down_by_itself_is_drained_until_it_is_terminated() -> None:
    world = going(pod(node_name="n1"), pod("agent", node_name="n1", owner=DAEMON))
    world.cloud.delays.terminated = 40 * SECOND
    world.cloud.end("i-n1")
    state = step(world)
    assert world.cluster.called("evict") == ["default/a"]
    world.advance(38 * SECOND)
    state = step(world, state)
    assert world.cluster.called("force_delete_pod") == []
    world.advance(2 * SECOND)
    assert step(world, state)["result"] == "terminated"
    assert world.cluster.called("force_delete_pod") == ["default/a", "default/agent"]
    assert world.cluster.pods == {}


def test_pods_of_a_stopped_machine_are_deleted_and_the_machine_is_terminated() -> None:
    world = going(pod(node_name="n1"))
    (machine,) = world.alive
    world.cloud.add(replace(machine, state="stopped"))
    state = step(world)
    assert world.cluster.called("force_delete_pod") == ["default/a"]
    assert (state["next"], world.cloud.called("terminate")) == ("wait", [("i-n1",)])
    world.advance(2 * SECOND)
    assert step(world, state)["result"] == "terminated"
    assert world.cluster.nodes() == ()


def test_a_stopped_machine_that_is_not_ours_is_left() -> None:
    world = going(pod(node_name="n1"))
    (machine,) = world.alive
    world.cloud.add(replace(machine, state="stopped", tags={}))
    assert step(world)["result"] == "terminated"
    assert world.cloud.called("terminate") == []


def test_pods_left_on_the_name_of_a_node_that_is_gone_are_deleted_at_the_end() -> None:
    world = going(pod(node_name="n1"))
    world.cloud.delays.terminated = 10 * SECOND
    del world.cluster.node_values["n1"]
    state = step(world)
    assert (state["next"], world.cluster.called("force_delete_pod")) == ("wait", [])
    world.advance(10 * SECOND)
    assert step(world, state)["result"] == "gone"
    assert world.cluster.pods == {}


def test_what_controllers_write_to_a_cordoned_node_is_no_error() -> None:
    members = [pod(name, node_name="n1") for name in "ab"]
    world = going(*members)
    world.cluster.budgeted.update(member.key for member in members)
    world.cluster.taints_cordoned = True
    state = step(world)
    assert state["blocked"] == 2
    assert keys.DRAIN_BLOCKED in world.node.annotations
    assert keys.UNSCHEDULABLE_TAINT in [taint.key for taint in world.node.taints]


def test_a_node_that_is_written_to_all_the_time_is_stepped_again() -> None:
    world = going(pod(node_name="n1"))
    world.cluster.fail_next("change_node", *[ConflictError("written")] * 4)
    assert (step(world)["next"], step(world)["wait_seconds"]) == ("wait", 2)


def test_a_deadline_on_the_node_holds_when_it_is_the_earlier_one() -> None:
    due = (NOW + 60 * SECOND).replace(tzinfo=None).isoformat()
    for deadline in (None, 120 * SECOND, SECOND):
        world = going(pod(node_name="n1"), annotations={keys.DRAIN_DEADLINE: due})
        world.cluster.budgeted.add("default/a")
        world.advance(30 * SECOND)
        step(world, deadline=deadline)
        assert bool(world.cluster.called("delete_pod")) == (deadline == SECOND)
        world.advance(30 * SECOND)
        step(world, deadline=deadline)
        assert "default/a" in world.cluster.called("delete_pod")


def test_a_deadline_that_cannot_be_read_is_none() -> None:
    world = going(pod(node_name="n1"), annotations={keys.DRAIN_DEADLINE: "soon"})
    world.advance(timedelta(days=1))
    step(world)
    assert world.cluster.called("evict") == ["default/a"]


def test_of_two_reasons_there_is_one_termination_with_the_earliest_deadline() -> None:
    world = going(pod(node_name="n1", annotations=HELD), reason="expiration")
    state = step(world)
    assert state["blocked"] == 1
    for seconds in (90, 120):
        assert remove_node(
            world.ports, world.node, "spot-interruption", world.clock.now() + seconds * SECOND
        )
    assert len(world.outbox.timers) == 1
    assert world.node.annotations[keys.REMOVAL_REASON] == "spot-interruption"
    due = world.node.annotations[keys.DRAIN_DEADLINE]
    assert due == (NOW + 90 * SECOND).isoformat(timespec="seconds")
    assert remove_node(world.ports, world.node, "expiration")
    assert world.node.annotations[keys.REMOVAL_REASON] == "spot-interruption"
    step(world, state)
    assert world.cluster.called("evict") == ["default/a"]


def test_a_young_machine_that_ec2_does_not_show_yet_is_waited_for() -> None:
    world = going()
    instead(world.cloud, "instances", lambda ids: ())
    state = step(world)
    assert state["next"] == "wait"
    world.advance(timedelta(minutes=6))
    assert step(world, state)["result"] == "terminated"
