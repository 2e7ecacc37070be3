"""Deleting a Provisioner drains its nodes, unless they are to be left behind."""

import time
from pathlib import Path
from typing import Any

import yaml

from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.model import labels as keys
from shared.model.provisioner import Provisioner
from shared.ports import NodeChange, NodeManifest
from tests.local.cluster_simulator.bench import NODES, Bench
from tests.waiting import until

CRD = Path(__file__).parents[3] / "infra" / "cluster" / "provisioners.yaml"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROVISIONERS = "/apis/karpenter.sh/v1alpha5/provisioners"


def cluster_with_provisioner(bench: Bench, url: str) -> tuple[KubeCluster, Provisioner]:
    for document in yaml.safe_load_all(CRD.read_text()):
        bench.create(CRDS, document)
    body: dict[str, Any] = {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {"provider": {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}},
    }
    bench.create(PROVISIONERS, body)
    cluster = KubeCluster("c1", connect_endpoint(url, "", lambda: "token"))
    (owner,), _ = cluster.provisioners()
    return cluster, owner


def manifest(name: str, owner: Provisioner | None) -> NodeManifest:
    return NodeManifest(
        name=name,
        labels={keys.PROVISIONER_NAME: "default", keys.INSTANCE_TYPE: "m5.xlarge"},
        annotations={},
        taints=(),
        finalizers=(keys.TERMINATION_FINALIZER,),
        provider_id=f"aws:///us-east-1a/i-{name}",
        owner=owner,
    )


def is_going(bench: Bench, name: str) -> bool:
    return "deletionTimestamp" in bench.get(f"{NODES}/{name}")["metadata"]


def test_nodes_are_deleted_with_their_provisioner_after_their_drain(bench: Bench) -> None:
    cluster, owner = cluster_with_provisioner(bench, bench.url)
    made = cluster.create_node(manifest("made", owner))
    assert made.owners == (owner.uid,)
    # One that its kubelet made first is given its owner when it is adopted.
    adopted = cluster.create_node(manifest("adopted", None))
    assert cluster.change_node(adopted, NodeChange(owner=owner)).owners == (owner.uid,)
    bench.add_node("foreign")
    bench.call("DELETE", f"{PROVISIONERS}/default")
    until(lambda: is_going(bench, "made"), "the garbage collector deletes its nodes")
    until(lambda: is_going(bench, "adopted"), "the adopted one, too")
    assert bench.get(f"{NODES}/made")["metadata"]["finalizers"] == [keys.TERMINATION_FINALIZER]
    assert not is_going(bench, "foreign")
    assert cluster.create_node(manifest("late", owner)).owners == (owner.uid,)
    until(lambda: is_going(bench, "late"), "the one that is made once its owner is gone, too")


def test_nodes_stay_when_their_provisioner_is_to_leave_them_behind(bench: Bench) -> None:
    cluster, owner = cluster_with_provisioner(bench, bench.url)
    cluster.create_node(manifest("made", owner))
    bench.call("DELETE", f"{PROVISIONERS}/default", {"propagationPolicy": "Orphan"})
    left = until(lambda: cluster.node("made"), "it stands")
    assert left.owners == ()
    # Long enough, a hundred times as fast, for a garbage collector that wants it.
    time.sleep(0.3)
    assert not is_going(bench, "made")


def test_an_owner_is_added_beside_those_there_are(bench: Bench) -> None:
    cluster, owner = cluster_with_provisioner(bench, bench.url)
    node = cluster.create_node(manifest("made", owner))
    other = Provisioner(name="other", uid="uid-other")
    assert cluster.change_node(node, NodeChange(owner=other)).owners == (owner.uid, "uid-other")
