"""A cluster that outlives the world: checked before, and left as it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.demo.cluster_client import Refused, read_documents
from infra.local.demo.external_cluster import ForeignCluster, leave
from infra.local.demo.problem import Problem
from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import config_map, deployment, node, pod

ROOT = Path(__file__).parents[3]
OURS = {"karpenter.sh/provisioner-name": "default"}
FINALIZER = "karpenter.sh/termination"
CLAIMS = "api/v1/namespaces/default/persistentvolumeclaims"


@pytest.fixture
def kube() -> Iterator[EmbeddedKube]:
    with EmbeddedKube() as running:
        yield running


@pytest.fixture
def cluster(kube: EmbeddedKube) -> ForeignCluster:
    return ForeignCluster(kube.url, token="t", ca_file=None)


def put(cluster: ForeignCluster, path: str, document: dict[str, Any]) -> None:
    """Create an object that the client does not remember, as another client would."""
    cluster.call("POST", path, document)


def definition() -> dict[str, Any]:
    return read_documents([ROOT / "infra" / "cluster" / "provisioners.yaml"])[0]


def provisioner() -> dict[str, Any]:
    return read_documents([ROOT / "examples" / "inflate" / "provisioner.yaml"])[0]


def claim(name: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def volume(claim_name: str) -> dict[str, Any]:
    """A volume that is bound to a claim of the default namespace, of the same name."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": "default", "name": claim_name},
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Delete",
    }
    kind = {"apiVersion": "v1", "kind": "PersistentVolume"}
    return {**kind, "metadata": {"name": claim_name}, "spec": spec}


def names(cluster: ForeignCluster, path: str) -> list[str]:
    return sorted(entry["metadata"]["name"] for entry in cluster.items(path))


def test_definitions_are_served_once_they_are_applied_though_their_cache_is_filled_first() -> None:
    with EmbeddedKube(initializing_seconds=0.5) as kube:
        cluster = ForeignCluster(kube.url, token="t", ca_file=None)
        for name in ("node_templates", "provisioners"):
            cluster.apply(read_documents([ROOT / "infra" / "cluster" / f"{name}.yaml"])[0])
        assert cluster.items("apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates") == []
        assert cluster.items("apis/karpenter.sh/v1alpha5/provisioners") == []


def test_added_objects_are_deleted_and_earlier_ones_stay(cluster: ForeignCluster) -> None:
    put(cluster, "api/v1/nodes", node("theirs"))
    put(cluster, "api/v1/namespaces/default/configmaps", config_map("theirs"))
    cluster.check()
    cluster.apply(definition())
    cluster.apply(provisioner())
    cluster.apply(config_map("theirs", changed="by us"))
    cluster.apply(config_map("ours"))
    assert cluster.clean() == ""
    assert names(cluster, "api/v1/nodes") == ["theirs"]
    assert names(cluster, "api/v1/namespaces/default/configmaps") == ["theirs"]
    with pytest.raises(Refused, match="404"):
        cluster.items("apis/karpenter.sh/v1alpha5/provisioners")


def test_dovetails_nodes_are_deleted_with_their_finalizers_and_pods(
    cluster: ForeignCluster,
) -> None:
    put(cluster, "api/v1/nodes", node("theirs"))
    cluster.check()
    put(cluster, "api/v1/nodes", node("new-but-theirs"))
    put(cluster, "api/v1/nodes", node("ours", labels=OURS, finalizers=[FINALIZER]))
    for name, place in (("a", "ours"), ("b", "theirs")):
        put(cluster, "api/v1/namespaces/default/pods", pod(name, node=place))
    assert cluster.clean() == ""
    assert names(cluster, "api/v1/nodes") == ["new-but-theirs", "theirs"]
    assert names(cluster, "api/v1/pods") == ["b"]


def test_pods_of_a_deleted_workload_are_deleted_before_the_world_ends(
    cluster: ForeignCluster,
) -> None:
    cluster.check()
    cluster.apply({**deployment("web"), "apiVersion": "apps/v1", "kind": "Deployment"})
    put(cluster, "api/v1/namespaces/default/pods", pod("web-1"))
    assert cluster.clean() == ""
    assert names(cluster, "api/v1/pods") == []


def test_claims_of_a_stateful_set_are_deleted_and_others_stay(cluster: ForeignCluster) -> None:
    put(cluster, CLAIMS, claim("theirs"))
    put(cluster, "api/v1/persistentvolumes", volume("theirs"))
    cluster.check()
    template = {"metadata": {"name": "data"}, "spec": claim("data")["spec"]}
    db = deployment("db")
    db["spec"] = {**db["spec"], "serviceName": "db", "volumeClaimTemplates": [template]}
    cluster.apply({**db, "apiVersion": "apps/v1", "kind": "StatefulSet"})
    put(cluster, CLAIMS, claim("data-db-0"))
    assert cluster.clean() == ""
    assert names(cluster, CLAIMS) == ["theirs"]
    assert names(cluster, "api/v1/persistentvolumes") == ["theirs"]


def test_volume_that_its_provisioner_does_not_delete_is_reported(
    cluster: ForeignCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.check()
    cluster.apply({**deployment("web"), "apiVersion": "apps/v1", "kind": "Deployment"})
    put(cluster, "api/v1/persistentvolumes", volume("data-db-0"))
    monkeypatch.setattr("infra.local.demo.external_cluster._WAIT_SECONDS", 0.1)
    assert cluster.clean() == "object data-db-0"


@pytest.mark.parametrize(
    ("definitions", "example", "kind"),
    [
        ("provisioners", "inflate/provisioner", "provisioner"),
        ("node_pools/node_pools", "big/node-pool", "nodepool"),
    ],
)
def test_an_owner_that_exists_already_is_not_adopted(
    cluster: ForeignCluster, definitions: str, example: str, kind: str
) -> None:
    cluster.apply(read_documents([ROOT / "infra" / "cluster" / f"{definitions}.yaml"])[0])
    cluster.apply(read_documents([ROOT / "examples" / f"{example}.yaml"])[0])
    with pytest.raises(Problem, match=f"if it may go: kubectl delete {kind} default"):
        cluster.check()


@pytest.mark.parametrize("labels", [OURS, {"karpenter.sh/nodepool": "default"}])
def test_a_node_that_looks_like_ours_is_not_taken_over(
    cluster: ForeignCluster, labels: dict[str, str]
) -> None:
    put(cluster, "api/v1/nodes", node("left", labels=labels))
    with pytest.raises(Problem, match="node left is of an earlier run or not ours"):
        cluster.check()


def test_scenarios_need_a_cluster_without_room(cluster: ForeignCluster) -> None:
    put(cluster, "api/v1/nodes", node("cordoned", labels={}))
    cluster.merge("api/v1/nodes/cordoned", {"spec": {"unschedulable": True, "taints": None}})
    cluster.require_room()
    put(cluster, "api/v1/nodes", node("open"))
    cluster.merge("api/v1/nodes/open", {"spec": {"taints": None}})
    with pytest.raises(Problem, match="node open would take the scenario's pods: kubectl cordon"):
        cluster.require_room()


def test_scenarios_need_their_namespace_empty(cluster: ForeignCluster) -> None:
    put(cluster, "api/v1/namespaces/default/pods", pod("theirs"))
    with pytest.raises(Problem, match="namespace default has pods"):
        cluster.require_room()


def test_what_the_cluster_refuses_is_said_in_one_line(cluster: ForeignCluster) -> None:
    cluster.check()
    with pytest.raises(Problem, match=r"refuses ConfigMap BAD \(v1\): 422: "):
        cluster.apply(config_map("BAD"))


def test_a_cluster_that_is_gone_does_not_keep_the_world() -> None:
    said: list[str] = []
    cluster = ForeignCluster("http://127.0.0.1:1", token="t", ca_file=None)
    leave(cluster, said.append)
    assert len(said) == 2
    assert said[1].startswith("the cluster could not be cleaned: ")
