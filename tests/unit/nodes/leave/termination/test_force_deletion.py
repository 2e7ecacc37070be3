"""Pods that are left on a Node whose machine does not run any more."""

from collections.abc import Sequence

from shared.model.labels import OUT_OF_SERVICE_TAINT
from shared.nodes.leave.pod_eviction import delete_orphaned_pods, force_delete_pods
from tests.builders import node, pod
from tests.unit.nodes.leave.termination.drains import DAEMON, going, step
from tests.unit.worlds import MINUTE, World, instead

STATIC = {"kubernetes.io/config.mirror": "x"}


def world_of() -> World:
    return World(
        node(),
        pod("a", node_name="n1"),
        pod("done", node_name="n1", phase="Succeeded"),
        pod("agent", node_name="n1", owner=DAEMON),
        pod("elsewhere", node_name="n2"),
    )


def test_pods_of_workloads_are_deleted_and_those_of_daemonsets_stay_with_their_node() -> None:
    world = world_of()
    assert not force_delete_pods(world.ports, world.node)
    assert sorted(world.cluster.pods) == ["default/agent", "default/elsewhere"]
    assert world.node.unschedulable
    assert world.node.taints == ()
    calls = [call.method for call in world.cluster.calls]
    assert calls.index("change_node") < calls.index("force_delete_pod")
    assert not force_delete_pods(world.ports, world.node)
    assert len(world.cluster.kube_events) == 1


def test_a_node_with_volumes_is_out_of_service_and_stays() -> None:
    world = world_of()
    world.cluster.attachments["n1"] = ("csi-1",)
    for _ in range(2):
        assert force_delete_pods(world.ports, world.node)
    (taint,) = world.node.taints
    assert (taint.key, taint.value, taint.effect) == (
        OUT_OF_SERVICE_TAINT,
        "nodeshutdown",
        "NoExecute",
    )


def test_a_pod_that_a_finalizer_holds_is_waited_for() -> None:
    world = world_of()
    world.cluster.finalized.add("default/a")
    assert force_delete_pods(world.ports, world.node)
    assert "default/a" in world.cluster.pods


def test_pods_of_a_node_that_is_there_are_not_orphaned() -> None:
    world = world_of()
    delete_orphaned_pods(world.ports, "n1")
    assert world.cluster.calls == []
    delete_orphaned_pods(world.ports, "n2")
    assert world.cluster.called("force_delete_pod") == ["default/elsewhere"]
    delete_orphaned_pods(world.ports, "n3")


def test_a_pod_that_is_bound_after_the_drain_keeps_the_node_until_its_machine_has_ended() -> None:
    world = going()
    world.cloud.delays.terminated = MINUTE
    terminate = world.cloud.terminate

    def and_bind(instance_ids: Sequence[str]) -> None:
        terminate(instance_ids)
        world.cluster.add(pod(node_name="n1"))

    instead(world.cloud, "terminate", and_bind)
    state = step(world)
    assert (state["next"], world.node.is_ours) == ("wait", True)
    world.advance(MINUTE)
    assert step(world, state)["result"] == "terminated"
