"""Binding at ready: pods first, then the taint goes."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError, UnavailableError
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.values import replace
from shared.nodes.timers.heartbeats import drop_heartbeat, last_heartbeats
from shared.ports import TimerKind
from tests import builders as make
from tests.builders import NOT_READY, pod, provisioner
from tests.unit.worlds import MINUTE, NAME, World, failing, instead

WAIT = Taint(key="cilium", effect=Effect.NO_EXECUTE)
JOB = ControllerRef(kind="Job", name="j", uid="j")
STATEFUL_SET = ControllerRef(kind="StatefulSet", name="db", uid="db")


def launched(*members: Pod, **changes: Any) -> World:
    """A node whose kubelet is ready, with pods promised to it that could not be bound early."""
    world = World(provisioner(ttl_until_expired=60 * MINUTE, **changes), *members)
    world.provision()
    world.kubelet_joins(world.node.name)
    return world


def test_nominated_pods_are_bound_before_the_taint_is_removed() -> None:
    world = launched(*make.pods(2, owner=JOB))
    report = world.bind(world.node.name)
    assert (report.initialized, report.pods_bound) == (True, 2)
    assert set(world.bound.values()) == {world.node.name}
    assert world.node.is_initialized
    assert world.node.labels[keys.INITIALIZED] == "true"
    assert world.ledger.slots(NAME) == ()
    methods = [call.method for call in world.cluster.calls]
    assert max(n for n, method in enumerate(methods) if method == "bind") < methods.index(
        "change_node"
    )


def test_expiration_of_a_node_whose_maker_could_not_start_it_is_watched() -> None:
    world = launched(pod(owner=JOB))
    drop_heartbeat(world.ledger, NAME, world.node.uid, TimerKind.EXPIRATION)
    world.bind(world.node.name)
    assert (world.node.uid, "expiration") in last_heartbeats(world.ledger, NAME)


def test_registration_timer_of_a_node_that_has_joined_is_left_to_end_by_itself() -> None:
    world = launched(pod(owner=JOB))
    world.bind(world.node.name)
    assert {kind for _, kind in last_heartbeats(world.ledger, NAME)} == {
        "registration",
        "expiration",
    }


def test_what_only_kube_scheduler_can_place_is_left_to_it() -> None:
    world = launched(pod("a", claims=("data",)), pod("b", owner=JOB))
    report = world.bind(world.node.name)
    assert (report.pods_bound, report.pods_left_to_scheduler) == (1, 1)
    assert list(world.bound) == ["b"]


def test_node_bought_for_a_claim_opens_for_it_and_for_what_was_bought_with_it() -> None:
    world = launched(pod("db", claims=("data",), owner=STATEFUL_SET), pod("web", owner=JOB))
    (promised,) = world.ledger.slots(NAME)
    assert not [value for value in promised.capacity if value.startswith("attachable-volumes-")]
    assert not [value for value in promised.allocatable if value.startswith("attachable-volumes-")]
    report = world.bind(world.node.name)
    assert (report.initialized, report.waiting_for) == (True, "")
    assert world.node.taints == ()
    assert world.bound == {"web": world.node.name}


def test_the_policy_may_leave_all_binding_to_kube_scheduler() -> None:
    world = World(provisioner(), pod())
    world.policy = LaunchPolicy(binding_policy=BindingPolicy.SCHEDULER)
    world.provision()
    world.kubelet_joins(world.node.name)
    report = world.bind(world.node.name)
    assert (report.initialized, report.pods_bound, report.pods_left_to_scheduler) == (True, 0, 1)
    assert world.bound == {}


def test_deleted_terminating_and_foreign_pods_are_skipped() -> None:
    members = make.pods(5, owner=JOB, cpu=100)
    world = launched(*members)
    del world.cluster.pods["default/p000"]
    world.cluster.add(pod("p001", owner=JOB, uid="another"))
    world.cluster.add(pod("p002", owner=JOB, deletion_at=make.NOW))
    world.cluster.fail_next("bind", ConflictError("bound elsewhere"))
    report = world.bind(world.node.name)
    assert (report.pods_bound, report.pods_refused) == (1, 1)
    assert list(world.bound) == ["p004"]


def test_foreign_or_deleting_node_is_not_changed() -> None:
    world = World(make.node("foreign", finalizers=()), make.node("going", deletion_at=make.NOW))
    for name in ("foreign", "going", "missing"):
        assert world.bind(name).waiting_for == "not a node of Dovetail, or being deleted"
    assert world.cluster.calls == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ready": False}, "the kubelet to be Ready"),
        (
            {
                "taints": (
                    NOT_READY,
                    Taint(key=keys.NODE_NOT_READY_TAINT, effect=Effect.NO_SCHEDULE),
                )
            },
            "startup taint node.kubernetes.io/not-ready to go",
        ),
        ({"taints": (NOT_READY, WAIT)}, "startup taint cilium to go"),
    ],
)
def test_a_node_that_is_not_there_yet_waits(changes: dict[str, Any], reason: str) -> None:
    world = World(provisioner("other"), provisioner(startup_taints=(WAIT,)), pod())
    world.provision()
    owner = world.node.provisioner
    assert owner in {"default", "other"}
    world.cluster.add(provisioner(owner, startup_taints=(WAIT,)))
    world.kubelet_joins(world.node.name, **changes)
    report = world.bind(world.node.name)
    assert report.waiting_for == reason
    assert not report.initialized
    assert not world.node.is_initialized


def test_a_duplicate_event_finds_nothing_to_do() -> None:
    world = launched(pod())
    world.bind(world.node.name)
    calls = len(world.cluster.calls)
    assert world.bind(world.node.name).initialized
    assert len(world.cluster.calls) == calls


def test_a_slot_left_behind_by_a_crash_after_the_taint_went_is_dropped() -> None:
    world = launched(pod(claims=("data",)))
    world.ledger.fail_next("drop_slot", RuntimeError("the process is gone"))
    with pytest.raises(RuntimeError):
        world.bind(world.node.name)
    assert world.node.is_initialized
    assert world.sweep().unbound_nodes == 1
    assert world.outbox.binds == [(NAME, (world.node.name,))]
    assert world.bind(world.node.name).initialized
    assert world.ledger.slots(NAME) == ()
    assert world.sweep().unbound_nodes == 0


def test_a_node_that_was_written_meanwhile_is_read_again_once() -> None:
    world = launched(pod())
    world.cluster.fail_next("change_node", ConflictError("written"))
    assert world.bind(world.node.name).initialized
    world = launched(pod(owner=JOB))
    world.cluster.fail_next("change_node", ConflictError("written"))
    original = world.cluster.bind_all

    def bind_all(bindings: Any) -> Any:
        answer = original(bindings)
        world.kubelet_joins(world.node.name, ready=False)
        return answer

    instead(world.cluster, "bind_all", bind_all)
    report = world.bind(world.node.name)
    assert (report.waiting_for, report.pods_bound) == ("a quiet moment", 1)
    assert not world.node.is_initialized


@pytest.mark.parametrize(("times", "waits"), [(1, ""), (2, "a quiet moment")])
def test_pod_nominated_while_others_are_bound_is_bound_too(times: int, waits: str) -> None:
    world = launched(pod("p", owner=JOB), pod("late", owner=JOB))
    (slot,) = world.ledger.slots(NAME)
    late = next(pod_ref for pod_ref in slot.pods if pod_ref.name == "late")
    rest = tuple(pod_ref for pod_ref in slot.pods if pod_ref is not late)
    assert world.ledger.change_slot(replace(slot, pods=rest))
    original, left = world.cluster.bind_all, [late] * times

    def bind_all(bindings: Any) -> Any:
        answer = original(bindings)
        if left:
            (now,) = world.ledger.slots(NAME)
            world.ledger.change_slot(replace(now, pods=(*now.pods, left.pop())))
        return answer

    instead(world.cluster, "bind_all", bind_all)
    assert world.bind(world.node.name).waiting_for == waits
    assert world.node.is_initialized == (not waits)
    assert set(world.bound) == {"p", "late"}


def test_pod_that_no_room_is_left_for_on_the_node_is_left_to_kube_scheduler() -> None:
    world = launched(pod("fits", cpu=100, owner=JOB), pod("late", cpu=1500, owner=JOB))
    ended = pod("ended", cpu=64_000, node_name=world.node.name, phase="Succeeded")
    unknown = pod("unknown-to-the-plan", cpu=1500, node_name=world.node.name)
    world.cluster.add(ended, unknown)
    report = world.bind(world.node.name)
    assert (report.pods_bound, report.pods_left_to_scheduler) == (1, 1)
    assert "late" not in world.bound
    assert "fits" in world.bound
    assert world.node.is_initialized


def test_a_node_without_room_for_a_pod_that_provision_may_still_be_binding_stays_closed() -> None:
    world = World(provisioner(), pod("fits", cpu=100), pod("late", cpu=1500))
    bind_all = world.cluster.bind_all
    instead(world.cluster, "bind_all", failing(UnavailableError("answers too late")))
    with pytest.raises(UnavailableError):
        world.provision()
    instead(world.cluster, "bind_all", bind_all)
    world.kubelet_joins(world.node.name, ready_changed_at=world.clock.now())
    world.cluster.add(pod("unknown-to-the-plan", cpu=1500, node_name=world.node.name))
    report = world.bind(world.node.name)
    assert (report.waiting_for, report.pods_bound) == ("a quiet moment", 0)
    assert not world.node.is_open

    # The first provision may still be binding when the next one has found the Node.
    world.provision()
    assert not world.bind(world.node.name).initialized
    world.clock.advance(LaunchPolicy().invocation_timeout + MINUTE)
    world.provision()
    report = world.bind(world.node.name)
    assert (report.initialized, report.pods_bound, report.pods_left_to_scheduler) == (True, 1, 1)


def test_a_node_without_a_slot_loses_its_taint_all_the_same() -> None:
    world = World(make.node(taints=(NOT_READY,)))
    assert world.bind("n1").initialized
    assert world.outbox.timers_of(TimerKind.EXPIRATION) == []
