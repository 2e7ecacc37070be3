"""Opening a node: the not-ready taint goes before what needs the node open has run there."""

from shared.model import labels as keys
from shared.model.pods import Owner
from shared.model.resources import Resources
from shared.model.taints import Effect, Taint
from tests.builders import NOT_READY, instance_type, pod, provisioner
from tests.unit.services.world import NAME, World

GPU = Resources.from_mapping({"nvidia.com/gpu": 1})
TYPES = (instance_type("g4dn.xlarge", cpu=4000, price=526_000, extra={"nvidia.com/gpu": 1}),)
AGENT = Taint(key="agent", effect=Effect.NO_SCHEDULE)
JOB = Owner(kind="Job", name="j", uid="j")


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
