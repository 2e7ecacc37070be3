"""EBS volumes in the simulated cluster: made in a zone, attached before a pod runs, detached."""

import time

import pytest

from infra.local.cluster_simulator.client import Server
from infra.local.cluster_simulator.instances import AssumedInstances, Sizes
from infra.local.cluster_simulator.simulation import Setup, SimulationThread
from infra.local.cluster_simulator.world import Timing
from infra.local.kube.server import EmbeddedKube
from tests.local.cluster_simulator.bench import NODES, PODS, SIZES, SPEED, Bench, Json, pod
from tests.waiting import until

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


def using(name: str) -> Json:
    reference = {"claimName": "data"}
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": reference}])


@pytest.fixture
def disk(bench: Bench) -> Bench:
    """A bench with a node in zone a, and a claim that waits for its first pod."""
    return prepared(bench)


def prepared(bench: Bench) -> Bench:
    bench.create(
        CLASSES,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "gp3"},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gp3",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    bench.create(CLAIMS, claim)
    bench.add_node("n0")
    until(lambda: bench.is_ready("n0"))
    return bench


def is_running(bench: Bench, name: str) -> bool:
    return bool(bench.get(f"{PODS}/{name}")["status"].get("phase") == "Running")


def attached(bench: Bench) -> list[str]:
    """Return the nodes that have the volume attached."""
    found = bench.items(ATTACHMENTS)
    return [entry["spec"]["nodeName"] for entry in found if entry.get("status", {}).get("attached")]


def test_pod_of_a_local_volume_runs_on_the_node_of_that_volume_only(bench: Bench) -> None:
    for name in ("n0", "n1"):
        bench.add_node(name)
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
    place = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    bench.create(
        CLASSES,
        {
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    amount = {"storage": "1Gi"}
    local = {**wanted, "capacity": amount, "local": {"path": "/mnt"}, "nodeAffinity": place}
    bench.create(VOLUMES, {"metadata": {"name": "disk"}, "spec": local})
    until(lambda: bench.get(f"{VOLUMES}/disk")["status"]["phase"] == "Available")
    claim = {**wanted, "resources": {"requests": amount}}
    bench.create(CLAIMS, {"metadata": {"name": "data"}, "spec": claim})
    bench.create(PODS, using("web"))
    until(lambda: bench.get(f"{PODS}/web")["status"]["phase"] == "Running")
    assert bench.get(f"{PODS}/web")["spec"]["nodeName"] == "n1"
    assert bench.get(f"{VOLUMES}/disk")["status"]["phase"] == "Bound"


def test_limit_of_volumes_is_in_csinode_and_never_in_the_status_of_the_node(disk: Bench) -> None:
    found = until(lambda: not disk.is_gone(f"{CSI_NODES}/n0") and disk.get(f"{CSI_NODES}/n0"))
    (driver,) = found["spec"]["drivers"]
    assert (driver["name"], driver["allocatable"]) == ("ebs.csi.aws.com", {"count": 25})
    assert driver["nodeID"] == "i-n0"
    node = disk.get(f"{NODES}/n0")
    assert not [name for name in node["status"]["allocatable"] if "attachable" in name]
    assert node["metadata"]["labels"]["topology.ebs.csi.aws.com/zone"] == "us-east-1a"


def test_volume_is_made_in_the_zone_of_its_pod_and_attached_before_the_pod_runs(
    disk: Bench,
) -> None:
    assert disk.get(f"{CLAIMS}/data")["spec"].get("volumeName") is None
    disk.create(PODS, using("db"))
    until(lambda: is_running(disk, "db"), "the pod runs")
    assert attached(disk) == ["n0"]
    claim = disk.get(f"{CLAIMS}/data")
    assert claim["status"]["phase"] == "Bound"
    volume = disk.get(f"{VOLUMES}/{claim['spec']['volumeName']}")
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["us-east-1a"]
    disk.call("DELETE", f"{PODS}/db")
    until(lambda: not disk.items(ATTACHMENTS), "it is detached")
    disk.call("DELETE", f"{CLAIMS}/data")
    until(lambda: not disk.items(VOLUMES), "the volume goes with its claim")


def test_volume_keeps_its_pod_in_its_zone_and_moves_only_once_it_is_detached(disk: Bench) -> None:
    disk.create(PODS, using("db"))
    until(lambda: is_running(disk, "db"))
    disk.patch(f"{NODES}/n0", {"spec": {"unschedulable": True}})
    disk.call("DELETE", f"{PODS}/db")
    disk.add_node("far", zone="us-east-1b")
    until(lambda: disk.is_ready("far"))
    until(lambda: disk.is_gone(f"{PODS}/db"))
    disk.create(PODS, using("db"))
    message = "node(s) had volume node affinity conflict"
    until(lambda: message in str(disk.get(f"{PODS}/db")["status"].get("conditions")), message)
    disk.add_node("near")
    until(lambda: is_running(disk, "db"), "it runs in its zone")
    assert attached(disk) == ["near"]


def lost(disk: Bench) -> float:
    """Let the machine die under the pod, and delete the pod by force; return when, monotonic."""
    disk.patch(f"{NODES}/n0", {"metadata": {"finalizers": ["example.com/keep"]}})
    disk.create(PODS, using("db"))
    until(lambda: is_running(disk, "db"))
    disk.machines["aws:///us-east-1a/i-n0"] = "gone"
    until(lambda: not disk.is_ready("n0"), "the node is lost")
    before = time.monotonic()
    disk.call("DELETE", f"{PODS}/db?gracePeriodSeconds=0")
    disk.add_node("near")
    disk.create(PODS, using("other"))
    return before


def test_volume_of_a_lost_node_is_taken_from_it_after_six_minutes(disk: Bench) -> None:
    before = lost(disk)
    until(lambda: is_running(disk, "other"), "it is detached by force")
    assert time.monotonic() - before > 360 / SPEED


def test_out_of_service_taint_detaches_volumes_without_that_wait(kube: EmbeddedKube) -> None:
    bench = Bench(kube.url)
    setup = Setup(
        timing=Timing(speed=SPEED, least_lease_seconds=0.25, force_detach_seconds=1e6),
        instances=AssumedInstances(bench.machine_state),
        sizes=Sizes(SIZES),
    )
    with SimulationThread(Server(url=kube.url), setup):
        lost(prepared(bench))
        taints = [*(bench.get(f"{NODES}/n0")["spec"].get("taints") or ()), OUT_OF_SERVICE]
        bench.patch(f"{NODES}/n0", {"spec": {"taints": taints}})
        until(lambda: is_running(bench, "other"), "it is detached at once")
