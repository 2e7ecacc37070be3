import asyncio
import time
from dataclasses import replace

import pytest

from infra.local.cluster_simulator.client import Server
from infra.local.cluster_simulator.instances import AssumedInstances, Ec2Instances, Instance
from infra.local.cluster_simulator.kubelet.kubelet import STOPPED
from infra.local.cluster_simulator.simulation import Setup, Simulation, SimulationThread
from infra.local.cluster_simulator.world import Timing
from infra.local.kube.server import EmbeddedKube
from tests.local.cluster_simulator.bench import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    SPEED,
    Bench,
    condition,
    is_true,
    pod,
    taint_keys,
    template,
    workload,
)
from tests.waiting import until

MACHINE = "aws:///us-east-1a/i-n0"


def bind(bench: Bench, name: str, node_name: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    bench.create(f"{PODS}/{name}/binding", body)


def test_a_node_waits_for_its_machine_and_then_boots(bench: Bench) -> None:
    bench.machines[MACHINE] = "pending"
    bench.add_node("n0")
    bench.add_node("n1")
    until(lambda: bench.is_ready("n1"), "a node with a running machine is ready")
    waiting = bench.get(f"{NODES}/n0")
    assert not is_true(waiting, "Ready")

    bench.machines[MACHINE] = "running"
    until(lambda: bench.is_ready("n0"), "the machine runs now")
    ready = until(
        lambda: (n := bench.get(f"{NODES}/n0")) and not taint_keys(n) and n, "its taints go"
    )
    assert ready["status"]["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "58"}
    assert ready["metadata"]["labels"]["topology.kubernetes.io/region"] == "us-east-1"
    until(
        lambda: (
            not bench.is_gone("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n0")
        ),
        "its lease is there",
    )


def test_annotations_say_when_a_node_becomes_ready(bench: Bench) -> None:
    bench.add_node("never", annotations={"sim.dovetail.dev/never-ready": ""})
    before = time.monotonic()
    bench.add_node("late", annotations={"sim.dovetail.dev/ready-after": "120"})
    until(lambda: bench.is_ready("late"), "the late one is ready")
    assert time.monotonic() - before >= 120 / SPEED
    assert not bench.is_ready("never")


def test_a_node_without_a_mark_is_left_alone(bench: Bench) -> None:
    bench.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "foreign"}})
    bench.add_node("n0")
    until(lambda: bench.is_ready("n0"))
    assert "capacity" not in bench.get(f"{NODES}/foreign").get("status", {})


HELD = {"key": "karpenter.sh/not-ready", "effect": "NoSchedule"}


def plugin(bench: Bench, image: str = "nvcr.io/nvidia/k8s-device-plugin:v0.17.1") -> None:
    """Apply a device plugin's DaemonSet, with the tolerations of the NVIDIA chart."""
    own = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    made = template("plugin", cpu="50m", tolerations=[own])
    made["spec"]["containers"][0]["image"] = image
    made["spec"]["volumes"] = [
        {"name": "sockets", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}
    ]
    bench.create(DAEMON_SETS, workload("DaemonSet", "plugin", made))


def shows_gpu(bench: Bench, name: str) -> bool:
    return "nvidia.com/gpu" in bench.get(f"{NODES}/{name}")["status"].get("allocatable", {})


def test_device_shows_once_the_pod_of_its_plugin_runs_which_no_held_node_gets(
    bench: Bench,
) -> None:
    plugin(bench)
    held = bench.add_node("gpu", machine="g4dn.xlarge")
    bench.patch(f"{NODES}/gpu", {"spec": {"taints": [*held["spec"]["taints"], HELD]}})
    bench.add_node("open", machine="g4dn.xlarge")
    until(lambda: shows_gpu(bench, "open"), "the plugin registers the device")
    assert bench.is_ready("gpu")
    assert not shows_gpu(bench, "gpu")
    assert len(bench.pods("plugin")) == 1
    bench.patch(f"{NODES}/gpu", {"spec": {"taints": []}})
    until(lambda: shows_gpu(bench, "gpu"), "the taint is gone")


def test_device_shows_only_by_the_plugin_that_is_its_own(bench: Bench) -> None:
    plugin(bench, image="public.ecr.aws/neuron/neuron-device-plugin:2.26.26.0")
    bench.add_node("gpu", machine="g4dn.xlarge")
    until(lambda: bench.ready_pods("plugin"), "the plugin runs")
    bench.add_node("later")
    until(lambda: bench.is_ready("later"))
    assert not shows_gpu(bench, "gpu")


def test_a_pod_whose_device_the_node_does_not_name_is_admitted_without_it(bench: Bench) -> None:
    bench.add_node("gpu", machine="g4dn.xlarge")
    until(lambda: bench.is_ready("gpu"))
    asking = pod("asking")
    asking["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    bench.create(PODS, asking)
    bind(bench, "asking", "gpu")
    until(lambda: is_true(bench.get(f"{PODS}/asking"), "Ready"), "it runs without a GPU")


def test_a_pod_bound_before_the_node_is_ready_starts_with_it(bench: Bench) -> None:
    bench.machines[MACHINE] = "pending"
    bench.add_node("n0")
    init = [{"name": "prepare", "image": "x"}]
    bench.create(PODS, pod("early", initContainers=init))
    bind(bench, "early", "n0")
    assert bench.get(f"{PODS}/early")["status"]["phase"] == "Pending"
    bench.machines[MACHINE] = "running"
    until(lambda: is_true(bench.get(f"{PODS}/early"), "Ready"), "it runs")
    status = bench.get(f"{PODS}/early")["status"]
    assert status["podIP"].startswith("10.")
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert is_true(bench.get(f"{PODS}/early"), "PodScheduled")


def test_a_pod_without_room_is_refused_by_the_kubelet(bench: Bench) -> None:
    bench.add_node("n0")
    until(lambda: bench.is_ready("n0"))
    for name, cpu in (("first", "3"), ("second", "2")):
        bench.create(PODS, pod(name, cpu=cpu, schedulerName="none"))
        bind(bench, name, "n0")
    until(lambda: is_true(bench.get(f"{PODS}/first"), "Ready"), "the first runs")
    status = until(
        lambda: (s := bench.get(f"{PODS}/second")["status"])["phase"] == "Failed" and s,
        "the second is refused",
    )
    assert status["reason"] == "OutOfcpu"


def test_a_silent_node_is_tainted_emptied_and_deleted(bench: Bench) -> None:
    stays = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    patient = [stays | {"key": f"node.kubernetes.io/{why}"} for why in ("not-ready", "unreachable")]
    made = workload("Deployment", "web", template("web", tolerations=patient), replicas=2)
    bench.create(DEPLOYMENTS, made)
    bench.add_node("n0", finalizers=["karpenter.sh/termination"])
    until(lambda: len(bench.ready_pods("web")) == 2)
    first = {pod["metadata"]["name"] for pod in bench.pods("web")}
    bench.machines[MACHINE] = "gone"
    gone = until(
        lambda: (
            (n := bench.get(f"{NODES}/n0"))
            and condition(n, "Ready").get("status") == "Unknown"
            and n
        ),
        "the lease runs out",
    )
    assert condition(gone, "Ready")["reason"] == "NodeStatusUnknown"
    until(
        lambda: "node.kubernetes.io/unreachable" in taint_keys(bench.get(f"{NODES}/n0")),
        "it is tainted",
    )
    until(
        lambda: bench.get(f"{NODES}/n0")["metadata"].get("deletionTimestamp"),
        "the cloud controller deletes it, the finalizer holds",
    )
    until(
        lambda: all(
            p["metadata"].get("deletionTimestamp")
            for p in bench.pods("web")
            if p["metadata"]["name"] in first
        ),
        "the tolerations run out",
    )
    until(lambda: len(bench.pods("web")) == 4, "replacements are created")


def test_a_kubelet_that_is_stopped_ends_no_pod_until_it_starts_again(bench: Bench) -> None:
    brief = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    hasty = [brief | {"key": f"node.kubernetes.io/{why}"} for why in ("not-ready", "unreachable")]
    bench.add_node("n0")
    bench.create(PODS, pod("hasty", tolerations=hasty))
    until(lambda: is_true(bench.get(f"{PODS}/hasty"), "Ready"), "it runs")
    bench.patch(f"{NODES}/n0", {"metadata": {"annotations": {STOPPED: "true"}}})
    until(
        lambda: bench.get(f"{PODS}/hasty")["metadata"].get("deletionTimestamp"),
        "its node is unreachable, and it is evicted",
    )
    time.sleep(60 / SPEED)
    assert condition(bench.get(f"{NODES}/n0"), "Ready")["status"] == "Unknown"
    assert not bench.is_gone(f"{PODS}/hasty")
    bench.patch(f"{NODES}/n0", {"metadata": {"annotations": {STOPPED: None}}})
    until(lambda: bench.is_ready("n0"), "the kubelet is back")
    until(lambda: bench.is_gone(f"{PODS}/hasty"), "it ends the pod")


def test_a_node_whose_kubelet_never_reported_becomes_unreachable(bench: Bench) -> None:
    bench.add_node("n0", annotations={"sim.dovetail.dev/never-ready": ""})
    node = until(
        lambda: (
            (n := bench.get(f"{NODES}/n0"))
            and "node.kubernetes.io/unreachable" in taint_keys(n)
            and n
        )
    )
    assert condition(node, "Ready")["reason"] == "NodeStatusNeverUpdated"


def test_a_node_whose_name_was_used_before_counts_as_silent_since_then(bench: Bench) -> None:
    bench.machines[MACHINE] = "pending"
    bench.add_node("n0")
    until(lambda: condition(bench.get(f"{NODES}/n0"), "Ready"), "never heard of, it is Unknown")
    bench.call("DELETE", f"{NODES}/n0")
    brief = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    hasty = [brief | {"key": f"node.kubernetes.io/{why}"} for why in ("not-ready", "unreachable")]
    bench.create(PODS, pod("hasty", tolerations=hasty))
    bench.add_node("n0")
    bind(bench, "hasty", "n0")
    node = until(
        lambda: (
            (n := bench.get(f"{NODES}/n0"))
            and "node.kubernetes.io/unreachable" in taint_keys(n)
            and n
        ),
        "unreachable at birth",
    )
    assert condition(node, "Ready")["reason"] == "NodeStatusNeverUpdated"
    assert {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}.items() <= next(
        t for t in node["spec"]["taints"] if t["effect"] == "NoExecute"
    ).items()
    until(
        lambda: bench.get(f"{PODS}/hasty")["metadata"].get("deletionTimestamp"),
        "a pod that waits for less than the boot is evicted",
    )


def test_a_kubelet_that_ends_before_its_first_lease_is_missed(kube: EmbeddedKube) -> None:
    bench = Bench(kube.url)
    bench.add_node("n0")
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    bench.patch(f"{NODES}/n0/status", {"status": ready})
    setup = Setup(
        timing=Timing(speed=100, least_lease_seconds=0.05), parts=frozenset({"lifecycle"})
    )
    with SimulationThread(Server(url=kube.url), setup):
        until(
            lambda: "node.kubernetes.io/unreachable" in taint_keys(bench.get(f"{NODES}/n0")),
            "its silence is noticed",
        )


def test_a_stopped_machine_is_tainted_and_a_running_one_is_not(bench: Bench) -> None:
    shutdown = "node.cloudprovider.kubernetes.io/shutdown"
    bench.add_node("n0")
    until(lambda: bench.is_ready("n0"))
    bench.machines[MACHINE] = "stopped"
    until(lambda: shutdown in taint_keys(bench.get(f"{NODES}/n0")), "it is stopped")
    bench.machines[MACHINE] = "running"
    until(lambda: bench.is_ready("n0"), "it is started")
    until(lambda: shutdown not in taint_keys(bench.get(f"{NODES}/n0")), "the taint goes")


def test_a_node_is_deleted_once_its_machine_is_terminated_and_not_before(bench: Bench) -> None:
    bench.machines[MACHINE] = "ending"
    bench.add_node("n0")
    bench.add_node("n1")
    until(lambda: bench.is_ready("n1"), "the other one")
    assert not bench.is_gone(f"{NODES}/n0")
    bench.machines[MACHINE] = "gone"
    until(lambda: bench.is_gone(f"{NODES}/n0"), "the cloud controller deletes it")


def test_the_cloud_controller_labels_a_node_with_its_zone_and_type(kube: EmbeddedKube) -> None:
    bench = Bench(kube.url)
    bench.add_node("n0")

    class Described(AssumedInstances):
        async def find(self, provider_id: str, node_name: str) -> Instance:
            found = await super().find(provider_id, node_name)
            return replace(found, instance_type="m5.xlarge", zone_id="use1-az6", state="pending")

    setup = Setup(parts=frozenset({"cloud"}), instances=Described())
    with SimulationThread(Server(url=kube.url), setup):
        node = until(
            lambda: (
                (n := bench.get(f"{NODES}/n0"))
                and "node.cloudprovider.kubernetes.io/uninitialized" not in taint_keys(n)
                and n
            )
        )
    expected = {
        "topology.k8s.aws/zone-id": "use1-az6",
        "topology.kubernetes.io/region": "us-east-1",
        "failure-domain.beta.kubernetes.io/zone": "us-east-1a",
        "beta.kubernetes.io/instance-type": "m5.xlarge",
    }
    assert expected.items() <= node["metadata"]["labels"].items()


def test_parts_play_alone_and_in_a_loop_of_ones_own(kube: EmbeddedKube) -> None:
    bench = Bench(kube.url)
    bench.add_node("n0", annotations={"sim.dovetail.dev/ready-after": "0"})

    async def play() -> None:
        async with Simulation(Server(url=kube.url), Setup(parts=frozenset({"kubelet"}))):
            await asyncio.to_thread(until, lambda: bench.is_ready("n0"))

    asyncio.run(play())
    # Neither the cloud controller nor the node lifecycle controller was simulated.
    assert taint_keys(bench.get(f"{NODES}/n0")) == {
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/not-ready",
    }


def test_an_unknown_part_is_named() -> None:
    with pytest.raises(ValueError, match="'kublet' is unknown; choose from kubelet"):
        SimulationThread(Server(url="http://127.0.0.1:1"), Setup(parts=frozenset({"kublet"})))


def test_ec2_machines_read_again_before_they_call_an_instance_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "some")
    machines = Ec2Instances("http://127.0.0.1:1", "us-east-1")
    answers = [[], [_instance("i-2", "running")]]
    reads: list[int] = []

    def describe() -> list[object]:
        reads.append(1)
        return list(answers[min(len(reads) - 1, 1)])

    monkeypatch.setattr(machines, "_describe", describe)

    async def ask() -> list[str]:
        await machines.find("aws:///us-east-1a/i-1", "x")
        found = [
            await machines.find("aws:///us-east-1a/i-2", "x"),
            await machines.find("", "ip-10-0-0-2.ec2.internal"),
            await machines.find("aws:///us-east-1a/i-3", "x"),
            await machines.find("kind://x", "x"),
        ]
        return [machine.state for machine in found]

    assert asyncio.run(ask()) == ["running", "running", "gone", "running"]
    assert len(reads) <= 3


def _instance(instance_id: str, state: str) -> object:
    from infra.local.cluster_simulator.instances import _instance

    return _instance(
        {
            "InstanceId": instance_id,
            "InstanceType": "m5.large",
            "Placement": {"AvailabilityZone": "us-east-1a"},
            "State": {"Name": state},
            "PrivateDnsName": "ip-10-0-0-2.ec2.internal",
            "PrivateIpAddress": "10.0.0.2",
        },
        {"us-east-1a": "use1-az6"},
    )
