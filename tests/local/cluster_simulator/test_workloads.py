import asyncio
import gc

import pytest

from infra.local.cluster_simulator.controllers.workload import together
from tests.local.cluster_simulator.bench import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    STATEFUL_SETS,
    Bench,
    budget,
    condition,
    is_true,
    pod,
    template,
    workload,
)
from tests.waiting import until

REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"


def test_changed_template_is_rolled_out_and_old_pods_are_deleted(bench: Bench) -> None:
    bench.add_node("n0")
    bench.create(DEPLOYMENTS, workload("Deployment", "web", template("web", cpu="1"), replicas=2))
    until(lambda: len(bench.ready_pods("web")) == 2)
    bench.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": template("web", cpu="500m")}})

    def done() -> bool:
        status = bench.get(f"{DEPLOYMENTS}/web")["status"]
        counts = [status.get(k) for k in ("replicas", "updatedReplicas", "readyReplicas")]
        return counts == [2, 2, 2] and status["observedGeneration"] == 2

    until(done, "rolled out")
    until(lambda: len(bench.pods("web")) == 2, "old pods gone")
    assert {
        p["spec"]["containers"][0]["resources"]["requests"]["cpu"] for p in bench.pods("web")
    } == {"500m"}
    deployment = bench.get(f"{DEPLOYMENTS}/web")
    assert condition(deployment, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    owner = bench.pods("web")[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)


def test_scaling_down_prefers_pods_without_a_node_and_deletion_collects_all(bench: Bench) -> None:
    bench.add_node("n0")
    bench.create(DEPLOYMENTS, workload("Deployment", "web", template("web"), replicas=6))
    until(lambda: len(bench.ready_pods("web")) == 4, "four fit")
    bench.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 4}})
    until(lambda: len(bench.pods("web")) == 4)
    assert len(bench.ready_pods("web")) == 4
    bench.call("DELETE", f"{DEPLOYMENTS}/web")
    until(lambda: not bench.items(REPLICA_SETS) and not bench.pods("web"), "all collected")


def test_a_daemon_set_follows_nodes_and_their_taints(bench: Bench) -> None:
    bench.create(DAEMON_SETS, workload("DaemonSet", "agent", template("agent", cpu="100m")))
    bench.add_node("n0")
    closed = bench.add_node("n1")
    taints = [*closed["spec"]["taints"], {"key": "special", "effect": "NoSchedule"}]
    bench.patch(f"{NODES}/n1", {"spec": {"taints": taints}})
    until(lambda: bench.is_ready("n0") and bench.is_ready("n1"))
    until(lambda: len(bench.ready_pods("agent")) == 1)
    assert bench.pods("agent")[0]["spec"]["nodeName"] == "n0"
    bench.patch(f"{NODES}/n1", {"spec": {"taints": []}})
    until(lambda: len(bench.ready_pods("agent")) == 2, "the taint is gone")
    until(lambda: bench.get(f"{DAEMON_SETS}/agent")["status"]["numberReady"] == 2, "it is counted")


def test_a_stateful_set_starts_in_order_with_its_volumes(bench: Bench) -> None:
    bench.create(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "gp3"},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    claim = {
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gp3",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    made = workload("StatefulSet", "db", template("db"), replicas=2, volumeClaimTemplates=[claim])
    made["spec"]["serviceName"] = "db"
    bench.create(STATEFUL_SETS, made)
    until(lambda: bench.pods("db"))
    assert [p["metadata"]["name"] for p in bench.pods("db")] == ["db-0"]
    bench.add_node("n0", zone="us-east-1b")
    until(lambda: len(bench.ready_pods("db")) == 2)
    volumes = bench.items("/api/v1/persistentvolumes")
    assert len(volumes) == 2
    term = volumes[0]["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    assert term["matchExpressions"][0]["values"] == ["us-east-1b"]
    bench.patch(f"{STATEFUL_SETS}/db", {"spec": {"replicas": 1}})
    until(lambda: [p["metadata"]["name"] for p in bench.pods("db")] == ["db-0"])


@pytest.mark.parametrize("annotations", [{"sim.dovetail.dev/complete-after": "5"}, {}])
def test_a_job_ends_when_enough_pods_succeeded(bench: Bench, annotations: dict[str, str]) -> None:
    bench.add_node("n0")
    quick = template("sum", annotations=annotations)
    quick["spec"]["restartPolicy"] = "Never"
    bench.create(JOBS, workload("Job", "sum", quick, completions=3, parallelism=2))
    job = until(lambda: (j := bench.get(f"{JOBS}/sum")) and is_true(j, "Complete") and j)
    assert job["status"]["succeeded"] == 3
    assert job["status"]["active"] == 0
    assert {p["status"]["phase"] for p in bench.pods("sum")} == {"Succeeded"}


def test_a_budget_counts_percentages_of_the_wanted_replicas(bench: Bench) -> None:
    bench.add_node("n0")
    bench.create(DEPLOYMENTS, workload("Deployment", "web", template("web"), replicas=5))
    bench.create(BUDGETS, budget("web", maxUnavailable="40%"))

    def counts(*wanted: int) -> bool:
        names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
        status = bench.get(f"{BUDGETS}/web").get("status") or {}
        return tuple(status.get(name) for name in names) == wanted

    until(lambda: counts(5, 4, 3, 1), "one of five has no room, two may be missing")
    bench.patch(f"{BUDGETS}/web", {"spec": {"maxUnavailable": None, "minAvailable": "50%"}})
    until(lambda: counts(5, 4, 3, 1), "half of five, rounded up")


def test_nodes_of_a_provisioner_are_deleted_with_it(bench: Bench) -> None:
    names = {"plural": "provisioners", "singular": "provisioner", "kind": "Provisioner"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha5",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    bench.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "provisioners.karpenter.sh"},
            "spec": {
                "group": "karpenter.sh",
                "names": names,
                "scope": "Cluster",
                "versions": [version],
            },
        },
    )
    path = "/apis/karpenter.sh/v1alpha5/provisioners"
    kind = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner"}
    owner = bench.create(path, {**kind, "metadata": {"name": "default"}})
    reference = {**kind, "name": "default", "uid": owner["metadata"]["uid"]}
    bench.add_node("n0", ownerReferences=[reference])
    until(lambda: bench.is_ready("n0"))
    bench.call("DELETE", f"{path}/default")
    until(lambda: bench.is_gone(f"{NODES}/n0"), "the node is collected")


def test_a_gated_pod_waits_and_a_spread_is_kept(bench: Bench) -> None:
    for number, zone in enumerate(("us-east-1a", "us-east-1b")):
        bench.add_node(f"n{number}", zone=zone)
    bench.create(PODS, pod("gated", schedulingGates=[{"name": "wait"}]))
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    even = template("web", topologySpreadConstraints=[spread])
    bench.create(DEPLOYMENTS, workload("Deployment", "web", even, replicas=4))
    until(lambda: len(bench.ready_pods("web")) == 4)
    on_nodes = sorted(p["spec"]["nodeName"] for p in bench.pods("web"))
    assert on_nodes == ["n0", "n0", "n1", "n1"]
    assert not bench.get(f"{PODS}/gated")["spec"].get("nodeName")
    bench.patch(f"{PODS}/gated", {"spec": {"schedulingGates": None}})
    until(lambda: is_true(bench.get(f"{PODS}/gated"), "Ready"), "the gate is open")


def test_many_calls_are_made_some_at_a_time_and_broken_off_together() -> None:
    """As when the simulator ends while a controller makes many pods."""
    made: list[int] = []

    async def break_off() -> None:
        begun = asyncio.Event()

        async def call(number: int) -> None:
            made.append(number)
            begun.set()
            await asyncio.Event().wait()

        calls = asyncio.create_task(together(call, range(40)))
        await begun.wait()
        calls.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls

    asyncio.run(break_off())
    gc.collect()
    assert made == list(range(16))
