"""Emptiness timers: stamp, wait, cordon, look again, remove."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError, InvalidMessageError, UnavailableError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.policy import BindingPolicy
from shared.model.values import replace
from shared.nodes.brakes.runaway import recent_trials, subjects_of
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.timers.heartbeats import last_heartbeats
from shared.ports import NodeChange, TimerKind
from tests.builders import NOW, node, pod, provisioner, ref, slot
from tests.unit.nodes.leave.empty_nodes import TTL, begin, empty_world, stamp_of, step
from tests.unit.worlds import NAME, SECOND, World, failing, instead, moving_in

TAINT = Taint(key="example.com/agent", effect=Effect.NO_SCHEDULE)


def test_duplicate_events_are_harmless() -> None:
    world = empty_world()
    begin(world)
    first = world.node
    world.advance(5 * SECOND)
    begin(world)
    begin(world)
    assert world.node == first
    assert len(world.outbox.timers) == 1
    assert len(world.outbox.refused) == 2


@pytest.mark.parametrize(
    ("world", "outcome"),
    [
        (World(provisioner(ttl_after_empty=TTL)), "gone"),
        (empty_world(pod(node_name="n1")), "not empty"),
        (World(provisioner(), node()), "not empty"),
        (World(provisioner("other", ttl_after_empty=TTL), node()), "not empty"),
        (World(provisioner(ttl_after_empty=TTL, paused=True), node()), "not empty"),
    ],
)
def test_a_node_that_is_not_empty_or_not_to_be_removed_gets_no_timer(
    world: World, outcome: str
) -> None:
    assert begin(world) == outcome
    assert world.outbox.timers == []
    assert world.cluster.calls == []


def test_a_new_node_waits_for_the_pod_that_kube_scheduler_binds_to_it() -> None:
    agent = Taint(key="example.com/agent", effect=Effect.NO_SCHEDULE)
    world = World(provisioner(ttl_after_empty=0 * SECOND, startup_taints=(agent,)), pod("a"))
    world.provision_until_quiet()
    name = world.node.name
    world.kubelet_joins(name, taints=(agent,))
    world.bind(name)
    world.kubelet_joins(name, taints=())
    assert world.bind(name).initialized
    emptiness = Emptiness(world.ports)
    assert emptiness.begin(name) == "timer started"
    world.advance(10 * SECOND)
    assert emptiness.begin(name) == "timer started"
    assert world.sweep().missing_timers == 0
    world.cluster.add(pod("a", node_name=name))
    assert emptiness.begin(name) == "not empty"
    assert world.node.deletion_at is None


@pytest.mark.parametrize("added", [(TAINT,), ()])
def test_nodes_that_go_as_empty_while_their_pods_wait_are_launched_twice_an_hour(
    added: tuple[Taint, ...],
) -> None:
    owner = ControllerRef(kind="StatefulSet", name="db", uid="u1", api_version="apps/v1")
    world = World(provisioner(ttl_after_empty=TTL), pod("db-0", owner=owner))
    world.policy = replace(world.policy, binding_policy=BindingPolicy.SCHEDULER)
    for _ in range(4):
        world.provision_until_quiet()
        for name in list(world.cluster.node_values):
            world.kubelet_joins(name)
            world.bind(name)
            world.cluster.change_node(world.node, NodeChange(add_taints=added))
            assert Emptiness(world.ports).begin(name) == "timer started"
            world.advance(TTL)
            assert Emptiness(world.ports).begin(name) == "removed"
            world.cloud.end(world.node.instance_id)
            del world.cluster.node_values[name]
        world.advance(60 * SECOND)
    assert len(world.cloud.all_instances) == 2
    (said,) = world.messages("NodesNeverUsable", "Pod")
    assert "nodes of 2 launches of the last hour never became usable" in said


@pytest.mark.parametrize("cordoned", [False, True])
def test_an_empty_node_that_users_cordoned_is_no_failed_launch(*, cordoned: bool) -> None:
    world = empty_world(pod("waits"), created_at=NOW, taints=(TAINT,), unschedulable=cordoned)
    begin(world)
    world.advance(TTL)
    assert begin(world) == "removed"
    assert (recent_trials(world.ledger, NAME, world.clock.now()) == ()) is cordoned


def test_a_failed_launch_counts_though_the_step_that_cordoned_its_node_crashed() -> None:
    tolerates = Toleration(key=TAINT.key, operator="Exists")
    others = pod("elsewhere", owner=ControllerRef(kind="ReplicaSet", name="b", uid="b"))
    waits = pod("waits", owner=ControllerRef(kind="ReplicaSet", name="a", uid="a"))
    others = replace(others, scheduling=replace(others.scheduling, tolerations=(tolerates,)))
    world = empty_world(waits, others, created_at=NOW, taints=(TAINT,))
    world.cluster.taints_cordoned = True
    begin(world)
    world.advance(TTL)
    writes = world.ledger.change_note
    instead(world.ledger, "change_note", failing(UnavailableError("crash")))
    with pytest.raises(UnavailableError):
        begin(world)
    assert world.node.unschedulable
    instead(world.ledger, "change_note", writes)
    assert begin(world) == "removed"
    (trial,) = recent_trials(world.ledger, NAME, world.clock.now())
    assert trial.subjects == subjects_of(waits).keys()


def test_a_node_that_stays_empty_is_removed_and_drained() -> None:
    world = empty_world()
    begin(world)
    world.advance(TTL - SECOND)
    assert step(world)["wait_seconds"] == 1
    world.advance(SECOND)
    state = step(world)
    assert (state["next"], state["result"]) == ("done", "removed")
    assert world.node.deletion_at is not None
    assert world.node.unschedulable
    assert world.node.annotations[keys.REMOVAL_REASON] == "emptiness"
    (timer,) = world.outbox.timers_of(TimerKind.TERMINATION)
    assert timer.payload["instance_id"] == "i-n1"
    assert (world.node.uid, "emptiness") not in last_heartbeats(world.ledger, NAME)


def test_pod_bound_during_the_cordon_keeps_the_node() -> None:
    world = empty_world()
    begin(world)
    world.advance(TTL)
    moving_in(world)
    assert step(world)["result"] == "not empty"
    assert world.node.deletion_at is None
    assert not world.node.unschedulable
    assert stamp_of(world.node) is None
    assert keys.REMOVAL_REASON not in world.node.annotations


def test_a_promise_that_is_kept_between_two_reads_keeps_the_node() -> None:
    """bind binds its pods though the node is cordoned, and then drops their slot."""
    world = empty_world()
    begin(world)
    world.advance(TTL)
    promise = slot(instance_id="i-n1", node_name="n1", pods=(ref(pod("a")),))
    change_node = world.cluster.change_node

    def promised(node: Node, change: NodeChange) -> Node:
        if change.unschedulable:
            world.ledger.slot_values[NAME, promise.name] = promise
        return change_node(node, change)

    def then_bound(read: Callable[..., Any]) -> Callable[..., Any]:
        def read_and_bind(*of: str) -> Any:
            found = read(*of)
            if world.ledger.slot_values.pop((NAME, promise.name), None):
                world.cluster.add(pod("a", node_name="n1"))
            return found

        return read_and_bind

    instead(world.cluster, "change_node", promised)
    instead(world.cluster, "pods_on", then_bound(world.cluster.pods_on))
    instead(world.ledger, "slot_with", then_bound(world.ledger.slot_with))
    assert step(world)["result"] == "not empty"
    assert world.node.deletion_at is None


def test_cordon_of_another_client_is_not_undone() -> None:
    world = empty_world(unschedulable=True)
    begin(world)
    world.cluster.add(pod(node_name="n1"))
    assert step(world)["result"] == "not empty"
    assert stamp_of(world.node) is None
    assert world.node.unschedulable


def test_a_crash_after_the_cordon_is_made_good_by_the_next_step() -> None:
    world = empty_world()
    begin(world)
    world.advance(TTL)
    world.cluster.fail_next("delete_node", RuntimeError("the process is gone"))
    with pytest.raises(RuntimeError):
        step(world)
    assert world.node.unschedulable
    world.cluster.add(pod(node_name="n1"))
    assert step(world)["result"] == "not empty"
    assert not world.node.unschedulable


def test_a_node_that_changes_while_it_is_removed_is_looked_at_again() -> None:
    world = empty_world()
    begin(world)
    world.advance(TTL)
    world.cluster.fail_next("delete_node", ConflictError("written"))
    assert step(world)["wait_seconds"] == 1
    assert world.node.deletion_at is None
    assert step(world)["result"] == "removed"


def test_forgetting_tries_again_when_the_node_was_written() -> None:
    world = empty_world()
    begin(world)
    world.cluster.add(pod(node_name="n1"))
    world.cluster.fail_next("change_node", ConflictError("written"))
    assert step(world)["result"] == "not empty"
    assert stamp_of(world.node) is None


def test_finalizer_is_removed_from_a_node_deleted_during_cleanup() -> None:
    world = empty_world()
    begin(world)
    world.cluster.add(pod(node_name="n1"))
    original = world.cluster.change_node

    def change_node(other_node: Node, change: NodeChange) -> Node:
        del world.cluster.node_values["n1"]
        instead(world.cluster, "change_node", original)
        raise ConflictError("written")

    instead(world.cluster, "change_node", change_node)
    assert step(world)["result"] == "not empty"


def test_a_timer_of_a_node_that_is_gone_or_going_ends() -> None:
    world = empty_world()
    begin(world)
    world.cluster.delete_node(world.node)
    world.cluster.change_node(world.node, NodeChange(unschedulable=True))
    assert step(world)["result"] == "gone"
    assert world.node.unschedulable
    world.cluster.add(node(uid="another"))
    assert step(world)["result"] == "gone"
    del world.cluster.node_values["n1"]
    assert step(world)["result"] == "gone"


def test_a_state_without_its_fields_is_refused() -> None:
    with pytest.raises(InvalidMessageError, match="missing required field `node`"):
        step(empty_world(), {"cluster": NAME})


def test_bare_pod_rejected_by_its_kubelet_gets_one_launch_and_its_node_is_removed() -> None:
    """No controller replaces it: it stays as it is, for its author to see, and holds no node."""
    world = World(provisioner(ttl_after_empty=TTL), pod("bare", owner=None))
    world.provision()
    world.kubelet_joins(world.node.name)
    world.bind(world.node.name)
    (bare,) = world.cluster.pods.values()
    assert bare.node_name == world.node.name
    world.cluster.add(replace(bare, phase="Failed", resource_version=""))
    world.advance(SECOND)

    assert world.provision().nodes_launched == 0
    assert Emptiness(world.ports).begin(world.node.name) == "timer started"
    world.advance(2 * TTL)
    assert step(world)["result"] == "removed"
    assert len(world.cloud.all_instances) == 1
    assert list(world.cluster.pods) == ["default/bare"]
