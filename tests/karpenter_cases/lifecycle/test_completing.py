"""When a node is complete: ready, its startup taints gone, its devices shown."""

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.resources import Resources
from tests.builders import NOT_READY, node, pod, provisioner, ref, slot
from tests.karpenter_cases.lifecycle.nodes import changed, launched
from tests.unit.worlds import NAME, World

WAIT = Taint(key="cilium", effect=Effect.NO_EXECUTE)
BATCH = Taint(key="batch", effect=Effect.NO_SCHEDULE)
GPU = "nvidia.com/gpu"


def test_a_node_is_complete_when_all_conditions_are_met() -> None:
    world = launched(owner=provisioner(startup_taints=(WAIT,)))
    world.kubelet_joins(world.node.name, taints=(NOT_READY,))
    report = world.bind(world.node.name)
    assert (report.initialized, report.waiting_for, report.pods_bound) == (True, "", 1)


def test_a_complete_node_has_the_label_that_says_so() -> None:
    world = launched()
    assert keys.INITIALIZED not in world.node.labels
    world.kubelet_joins(world.node.name)
    world.bind(world.node.name)
    assert world.node.labels[keys.INITIALIZED] == "true"


def test_a_node_whose_kubelet_says_no_is_not_complete() -> None:
    world = launched()
    world.kubelet_joins(world.node.name, ready=False)
    assert world.bind(world.node.name).waiting_for == "the kubelet to be Ready"
    assert keys.INITIALIZED not in world.node.labels


def with_devices() -> World:
    wants = pod("gpu", extra={GPU: 1})
    world = World(provisioner(), node(taints=(NOT_READY,)), wants)
    one = slot(instance_id="i-n1", node_name="n1", pods=(ref(wants),))
    world.ledger.slot_values[NAME, one.name] = one
    return world


def test_a_node_whose_devices_are_not_shown_is_not_complete() -> None:
    world = with_devices()
    assert world.bind("n1").waiting_for == f"resource {GPU} to be shown"


def test_a_node_is_complete_once_its_devices_are_shown() -> None:
    world = with_devices()
    changed(world, allocatable=world.node.allocatable + Resources.from_mapping({GPU: 1}))
    assert world.bind("n1").initialized


def test_a_node_with_a_startup_taint_is_not_complete() -> None:
    world = launched(owner=provisioner(startup_taints=(WAIT,)))
    world.kubelet_joins(world.node.name, taints=(NOT_READY, WAIT))
    assert world.bind(world.node.name).waiting_for == "startup taint cilium to go"


def test_a_node_is_complete_once_its_startup_taints_are_gone() -> None:
    world = launched(owner=provisioner(startup_taints=(WAIT,)))
    # A taint with the same key and another effect is not a startup taint: no reason to wait.
    other = Taint(key=WAIT.key, effect=Effect.PREFER_NO_SCHEDULE)
    world.kubelet_joins(world.node.name, taints=(NOT_READY, other))
    assert world.bind(world.node.name).initialized


EPHEMERAL = sorted({keys.CLOUD_UNINITIALIZED_TAINT, keys.NODE_NOT_READY_TAINT})


@pytest.mark.parametrize("key", EPHEMERAL)
def test_node_with_an_ephemeral_taint_is_not_complete(key: str) -> None:
    world = launched()
    lasting = Taint(key=key, effect=Effect.NO_SCHEDULE)
    world.kubelet_joins(world.node.name, taints=(NOT_READY, lasting))
    assert world.bind(world.node.name).waiting_for == f"startup taint {key} to go"


def test_node_is_complete_once_ephemeral_taints_are_removed() -> None:
    world = launched()
    world.kubelet_joins(world.node.name, taints=(NOT_READY, BATCH))
    assert world.bind(world.node.name).initialized
