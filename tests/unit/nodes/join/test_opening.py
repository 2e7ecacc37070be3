"""Opening a node: the not-ready taint goes before what needs the node open has run there."""

import pytest

from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.resources import Resources
from tests.builders import DEFAULT_TOLERATIONS, NOT_READY, instance_type, pod, provisioner
from tests.unit.worlds import MINUTE, NAME, World, instead

GPU = Resources.from_mapping({"nvidia.com/gpu": 1})
TYPES = (instance_type("g4dn.xlarge", cpu=4000, price=526_000, extra={"nvidia.com/gpu": 1}),)
AGENT = Taint(key="agent", effect=Effect.NO_SCHEDULE)
JOB = ControllerRef(kind="Job", name="j", uid="j")


def gpu_world() -> World:
    """A node with a GPU, Ready, bought for a pod with a GPU and one without."""
    world = World(
        provisioner(),
        pod("gpu", cpu=500, extra={"nvidia.com/gpu": 1}, owner=JOB),
        pod("web", cpu=500, owner=JOB),
        types=TYPES,
    )
    world.provision()
    world.kubelet_joins(world.node.name)
    return world


def agent_world() -> tuple[World, Node]:
    """Return a closed node whose startup taint was removed, and as it was before that."""
    world = World(provisioner(startup_taints=(AGENT,)), pod(owner=JOB))
    world.provision()
    world.kubelet_joins(world.node.name, taints=(NOT_READY, AGENT))
    before = world.node
    world.kubelet_joins(before.name, taints=(NOT_READY,))
    return world, before


def test_node_opens_for_the_device_plugin_whose_device_it_waits_for() -> None:
    world = gpu_world()
    name = world.node.name
    report = world.bind(name)
    assert (report.initialized, report.pods_bound) == (False, 1)
    assert report.waiting_for == "resource nvidia.com/gpu to be shown"
    assert world.bound == {"web": name}
    assert world.device_plugin_starts(name, GPU)
    assert world.bind(name).initialized
    assert world.node.labels[keys.INITIALIZED] == "true"
    assert world.ledger.slots(NAME) == ()


def test_node_opens_for_the_agent_that_removes_its_startup_taint() -> None:
    world = World(provisioner(startup_taints=(AGENT,)), pod(owner=JOB))
    world.provision()
    world.kubelet_joins(world.node.name, taints=(NOT_READY, AGENT))
    assert world.bind(world.node.name).waiting_for == "startup taint agent to go"
    assert world.node.taints == (AGENT,)
    assert world.bound == {}


def test_open_node_leaves_pods_to_kube_scheduler_which_may_have_given_their_place_away() -> None:
    world = gpu_world()
    name = world.node.name
    world.bind(name)
    world.device_plugin_starts(name, GPU)
    report = world.bind(name)
    assert (report.pods_bound, report.pods_left_to_scheduler) == (0, 1)
    assert world.bound == {"web": name}


def test_devices_that_are_there_at_once_are_bound_before_the_node_opens() -> None:
    world = gpu_world()
    name = world.node.name
    shown = world.node.allocatable + GPU
    world.kubelet_joins(name, allocatable=shown, taints=(NOT_READY,))
    assert world.bind(name).pods_bound == 2
    assert world.bound == {"web": name, "gpu": name}


def test_pods_that_tolerate_a_startup_taint_are_bound_before_its_removal() -> None:
    tolerant = (*DEFAULT_TOLERATIONS, Toleration(key="agent", operator="Exists"))
    owner = provisioner(startup_taints=(AGENT,))
    world = World(owner, pod("early", tolerations=tolerant, owner=JOB), pod("late", owner=JOB))
    world.provision()
    name = world.node.name
    world.kubelet_joins(name, taints=(NOT_READY, AGENT))
    assert world.bind(name).waiting_for == "startup taint agent to go"
    assert world.bound == {"early": name}
    world.kubelet_joins(name, taints=())
    report = world.bind(name)
    assert (report.initialized, report.pods_left_to_scheduler) == (True, 1)


def test_node_is_initialized_when_the_workload_it_waits_for_is_deleted() -> None:
    world = gpu_world()
    name = world.node.name
    world.bind(name)
    del world.cluster.pods["default/gpu"]
    assert world.bind(name).initialized
    assert world.node.is_initialized
    assert world.ledger.slots(NAME) == ()


def test_waiting_node_is_not_written_to_again_until_something_changes() -> None:
    world = gpu_world()
    name = world.node.name
    world.bind(name)
    version, (promise,) = world.node.resource_version, world.ledger.slots(NAME)
    assert world.bind(name).waiting_for == "resource nvidia.com/gpu to be shown"
    assert (world.node.resource_version, world.ledger.slots(NAME)) == (version, (promise,))
    assert [pod_ref.name for pod_ref in promise.pods] == ["gpu"]


def test_node_that_waits_too_long_says_so_once_and_takes_no_further_pods() -> None:
    world = gpu_world()
    name = world.node.name
    world.kubelet_joins(name, ready_changed_at=world.clock.now())
    world.bind(name)
    assert not told(world)
    world.advance(world.policy.initialization_timeout + MINUTE)
    for _ in range(2):
        assert world.bind(name).waiting_for == "resource nvidia.com/gpu to be shown"
    (text,) = told(world)
    assert text.startswith(
        "is Ready for more than 5 min and still waits for resource nvidia.com/gpu"
    )
    world.cluster.add(pod("further", cpu=100))
    world.provision()
    assert len(world.alive) == 2
    assert world.device_plugin_starts(name, GPU)
    assert world.bind(name).initialized


def test_node_whose_cloud_taint_stays_says_so() -> None:
    world = World(provisioner(), pod(owner=JOB))
    world.provision()
    name = world.node.name
    cloud = Taint(key=keys.CLOUD_UNINITIALIZED_TAINT, effect=Effect.NO_SCHEDULE)
    world.kubelet_joins(name, taints=(NOT_READY, cloud), ready_changed_at=world.clock.now())
    world.advance(world.policy.initialization_timeout + MINUTE)
    world.bind(name)
    (text,) = told(world)
    assert f"waits for startup taint {cloud.key} to go" in text
    assert not world.node.is_open


def test_bind_that_read_the_node_closed_leaves_pods_when_another_bind_opened_it() -> None:
    world, before = agent_world()
    name = world.node.name
    read_pod, read_node = world.cluster.pod, world.cluster.node

    def other_bind_opens_it(namespace: str, pod_name: str) -> Pod | None:
        stale = [before, before]
        instead(world.cluster, "pod", read_pod)
        instead(world.cluster, "node", lambda entry: stale.pop() if stale else read_node(entry))
        assert world.bind(name).waiting_for == "startup taint agent to go"
        assert world.node.is_open
        return read_pod(namespace, pod_name)

    instead(world.cluster, "pod", other_bind_opens_it)
    report = world.bind(name)
    assert (report.initialized, report.pods_left_to_scheduler) == (True, 1)
    assert world.bound == {}


def test_node_is_not_opened_while_another_bind_may_still_bind_a_pod() -> None:
    world, before = agent_world()
    name = world.node.name
    read_pod, read_node, stale = world.cluster.pod, world.cluster.node, [before]

    def other_bind_stops_while_it_binds(namespace: str, pod_name: str) -> Pod | None:
        instead(world.cluster, "pod", read_pod)
        world.cluster.fail_next("bind", RuntimeError("the process is frozen"))
        with pytest.raises(RuntimeError):
            world.bind(name)
        return read_pod(namespace, pod_name)

    instead(world.cluster, "pod", other_bind_stops_while_it_binds)
    instead(world.cluster, "node", lambda entry: stale.pop() if stale else read_node(entry))
    report = world.bind(name)
    assert (report.initialized, report.pods_bound) == (True, 1)
    assert world.bound == {"a": name}


def test_bind_that_read_the_slots_before_the_launch_was_written_down_reads_them_again() -> None:
    world, _ = agent_world()
    name, read_slots = world.node.name, world.ledger.slots

    def none_yet(cluster: str) -> tuple[Slot, ...]:
        instead(world.ledger, "slots", read_slots)
        return ()

    instead(world.ledger, "slots", none_yet)
    report = world.bind(name)
    assert (report.initialized, report.pods_bound) == (True, 1)
    assert world.ledger.slots(NAME) == ()


def test_pods_are_left_to_kube_scheduler_once_a_bind_began_to_open_the_node() -> None:
    world = World(provisioner(startup_taints=(AGENT,)), pod(owner=JOB))
    world.provision()
    name = world.node.name
    world.kubelet_joins(name, taints=(NOT_READY, AGENT))
    world.cluster.fail_next("change_node", RuntimeError("the process is gone"))
    with pytest.raises(RuntimeError):
        world.bind(name)
    assert not world.node.is_open
    world.kubelet_joins(name, taints=(NOT_READY,))
    report = world.bind(name)
    assert (report.initialized, report.pods_bound, report.pods_left_to_scheduler) == (True, 0, 1)


def told(world: World) -> list[str]:
    """Return what nodes that wait too long were told, in order."""
    events = sorted(world.cluster.kube_events.elements(), key=lambda kube_event: kube_event.message)
    warnings = [event for event in events if event.severity == "Warning"]
    return [warning.message for warning in warnings if warning.reason == "NotInitialized"]
