"""Doctor finds nodes that start for too long and workloads that a brake holds."""

from typing import Any

import pytest

from functions.cli.doctor.doctor import Doctor
from functions.cli.doctor.findings import Finding
from functions.cli.doctor.late_nodes import late_nodes
from shared.model import labels as keys
from shared.model.ec2.launches import Instance, Trial
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.nodes.brakes.runaway import save_failure, subjects_of
from shared.nodes.node_waits import device_plugin_problem, waiting_for
from shared.nodes.timers.heartbeats import save_forwarder_heartbeat
from tests.builders import (
    NOW,
    daemonset,
    needs,
    node,
    offering,
    pod,
    pods,
    provisioner,
    ref,
    scheduling,
    slot,
)
from tests.unit.worlds import MINUTE, NAME, World

GPU = "nvidia.com/gpu"
CLOSED = Taint(key=keys.NOT_READY_TAINT, effect=Effect.NO_SCHEDULE)
TENANT = Taint(key="team", value="red", effect=Effect.NO_SCHEDULE)


def running(world: World) -> World:
    """Let the machine of node n1 run."""
    tags = {keys.TAG_CLUSTER: NAME}
    machine = Instance(instance_id="i-n1", state="running", offering=offering(), tags=tags)
    world.cloud.add(machine)
    return world


def starting(**changes: Any) -> World:
    """A node of Dovetail that carries the not-ready taint, with its machine running."""
    world = running(World(provisioner(), node(taints=(CLOSED,), **changes)))
    save_forwarder_heartbeat(world.ledger, NAME, NOW + 100 * MINUTE)
    return world


def findings(world: World) -> list[Finding]:
    return [
        finding
        for finding in Doctor(world.ports).findings()
        if finding.kind.startswith(("node-not", "workload", "device"))
    ]


def test_bare_metal_is_late_after_twenty_minutes() -> None:
    metal = {**node().labels, keys.INSTANCE_TYPE: "m5.metal"}
    world = starting(ready=None, labels=metal)
    world.advance(20 * MINUTE)
    assert findings(world) == []
    world.advance(MINUTE)
    assert [finding.kind for finding in findings(world)] == ["node-not-joined"]


def test_a_node_whose_kubelet_does_not_join_is_found_with_the_place_to_look() -> None:
    world = starting(ready=None)
    world.advance(2 * MINUTE)
    assert findings(world) == []
    world.advance(MINUTE)
    (found,) = findings(world)
    assert (found.kind, found.subject) == ("node-not-joined", "n1")
    assert found.text.startswith("i-n1 (m5.large, on-demand, us-east-1a) was launched 3 min ago")
    assert "'Unable to register node'" in found.text
    assert found.command.endswith("get-console-output --latest --output text --instance-id i-n1")


def test_a_ready_node_that_is_not_initialized_is_found_with_what_it_waits_for() -> None:
    cni = Taint(key="cni/starting", effect=Effect.NO_SCHEDULE)
    world = running(World(provisioner(startup_taints=(cni,)), node(taints=(CLOSED, cni))))
    world.advance(4 * MINUTE)
    assert findings(world) == []
    world.advance(MINUTE)
    (found,) = findings(world)
    assert found.kind == "node-not-initialized"
    assert found.text.endswith(
        "launched 5 min ago, is Ready and waits for startup taint cni/starting to go"
    )
    assert found.command == "kubectl describe node n1"


def test_a_ready_node_that_waits_for_nothing_waits_for_the_bind_function() -> None:
    world = starting()
    world.advance(5 * MINUTE)
    (found,) = findings(world)
    assert found.text.endswith("is Ready and waits for the bind function")


def test_a_node_that_joined_and_is_not_ready_is_found_at_once() -> None:
    joined = {**node().labels, keys.INITIALIZED: "true"}
    world = starting(ready=False, labels=joined)
    (found,) = findings(world)
    assert (found.kind, found.subject) == ("node-not-ready", "n1")
    world = starting(labels=joined)
    world.advance(60 * MINUTE)
    assert findings(world) == []


def test_foreign_and_deleting_nodes_are_left_out() -> None:
    late = NOW + 60 * MINUTE
    others = (
        node("foreign", ready=None, finalizers=()),
        node("going", ready=None, deletion_at=NOW),
        node("bare", ready=None, provider_id=""),
        node("ageless", ready=None, created_at=None),
    )
    assert late_nodes(others, (), {}, {}, (), late) == []


def test_a_workload_that_a_brake_holds_is_found_with_its_end() -> None:
    free = pod("free", owner=None, namespace="other")
    world = World(provisioner(), *pods(6), pod("bare", owner=None), free)
    for plan in ("one", "two"):
        subjects = {*subjects_of(pods(1)[0]), *subjects_of(pod("bare", owner=None))}
        save_failure(
            world.ledger, NAME, Trial(plan_id=plan, launched_at=NOW, subjects=frozenset(subjects))
        )
    replicas, bare = findings(world)
    assert (replicas.kind, replicas.subject) == ("workload-held", "ReplicaSet default/web")
    assert replicas.text.startswith("6 pods held until 01:00 UTC: nodes of 2 launches never joined")
    assert replicas.command == "dovetail why pod/default/p000 --cluster test"
    assert (bare.subject, bare.text.split(":")[0]) == ("pod default/bare", "1 pod held until 01")


def gpu_world(*more: Any) -> World:
    wants = pod("train", scheduling=scheduling(extra={GPU: 1}))
    promise = slot(instance_id="i-n1", node_name="n1", pods=(ref(wants),))
    world = running(World(provisioner(), node(taints=(TENANT,)), wants, *more))
    world.ledger.slot_values[NAME, promise.name] = promise
    world.advance(5 * MINUTE)
    return world


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ((), f"no DaemonSet looks like a device plugin for {GPU}: install it"),
        (
            (daemonset("gpu-device-plugin"),),
            "DaemonSet kube-system/gpu-device-plugin does not tolerate taint team=red:NoSchedule",
        ),
    ],
)
def test_a_device_plugin_that_is_missing_or_kept_away_is_found(
    plugins: tuple[Any, ...], expected: str
) -> None:
    found = {finding.kind: finding.text for finding in findings(gpu_world(*plugins))}
    assert found["node-not-initialized"].endswith(f"waits for resource {GPU} to be shown")
    assert found["device-plugin"] == expected


def test_a_device_plugin_that_may_run_is_no_finding() -> None:
    anywhere = Toleration(operator="Exists")
    plugin = daemonset("nvidia-device-plugin", tolerations=(anywhere,))
    assert {finding.kind for finding in findings(gpu_world(plugin))} == {"node-not-initialized"}


def test_a_plugin_is_known_by_its_vendor_and_by_the_labels_it_selects() -> None:
    neuron = daemonset("neuron-agent", node_selector=needs("neuron", "In", "yes"))
    said = device_plugin_problem(node(), "aws.amazon.com/neuron", (daemonset(), neuron))
    assert said == "DaemonSet kube-system/neuron-agent does not select the node's labels"
    labelled = node(labels={**node().labels, "neuron": "yes"})
    assert device_plugin_problem(labelled, "aws.amazon.com/neuron", (neuron,)) == ""


def test_a_node_whose_provisioner_is_gone_has_no_startup_taints() -> None:
    assert waiting_for(node(taints=(TENANT,)), None, ()) == ""
    assert waiting_for(node(ready=False), None, ()) == "the kubelet to be Ready"
