"""Two worlds with one face: the fake in memory and the adapter on the embedded API server."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import yaml

from shared.kube.api import KubeApi
from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.resources import Resources
from shared.ports import Cluster, FoundImage, NodeManifest, Subnet, TemplateStatus
from tests.fakes.cluster import FakeCluster

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FINALIZER = keys.TERMINATION_FINALIZER
MANIFESTS = Path(__file__).parents[3] / "infra" / "cluster"
CRDS = (
    "provisioners.yaml",
    "node_templates.yaml",
    "node_pools/node_pools.yaml",
    "node_pools/node_classes.yaml",
)


@cache
def _definitions() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load((MANIFESTS / name).read_text()) for name in CRDS)


def _keys(image: dict[str, Any], operator: str) -> tuple[str, ...]:
    needs = [need for need in image["requirements"] if need["operator"] == operator]
    assert not any("values" in need for need in needs)
    return tuple(need["key"] for need in needs)


class World(Protocol):
    """A cluster and the means to bring it into a state."""

    cluster: Cluster

    def apply(self, raw: dict[str, Any]) -> None: ...

    def forbid_eviction(self, pod: str, labels: dict[str, str]) -> None: ...

    def attach(self, name: str, node: str, volume: str) -> None: ...

    def kube_events(self) -> dict[tuple[str, str], int]: ...

    def condition(self, provisioner: str, kind: str = "Active") -> tuple[bool, str, str] | None: ...

    def pool_condition(self, pool: str) -> tuple[bool, str, str] | None: ...

    def replace_pod(self, raw: dict[str, Any]) -> None: ...

    def template_status(self, name: str, *, of_pool: bool = False) -> TemplateStatus | None: ...


class InMemory:
    def __init__(self) -> None:
        self.fake = FakeCluster("c1", now=NOW)
        self.cluster: Cluster = self.fake

    def apply(self, raw: dict[str, Any]) -> None:
        self.fake.apply(raw)

    def forbid_eviction(self, pod: str, labels: dict[str, str]) -> None:
        self.fake.budgeted.add(pod)

    def attach(self, name: str, node: str, volume: str) -> None:
        self.fake.attachments[node] = (*self.fake.attachments.get(node, ()), name)

    def kube_events(self) -> dict[tuple[str, str], int]:
        return {(event.name, event.reason): n for event, n in self.fake.kube_events.items()}

    def condition(self, provisioner: str, kind: str = "Active") -> tuple[bool, str, str] | None:
        known = self.fake.conditions if kind == "Active" else self.fake.usable
        return known.get(provisioner)

    def pool_condition(self, pool: str) -> tuple[bool, str, str] | None:
        return self.fake.conditions.get(f"NodePool/{pool}")

    def template_status(self, name: str, *, of_pool: bool = False) -> TemplateStatus | None:
        told = self.fake.class_statuses if of_pool else self.fake.template_statuses
        return told.get(name)

    def replace_pod(self, raw: dict[str, Any]) -> None:
        raw = {**raw, "metadata": {**raw["metadata"], "uid": "another"}}
        self.fake.apply(raw)


PLACES = {
    "Pod": "/api/v1/namespaces/shop/pods",
    "Node": "/api/v1/nodes",
    "DaemonSet": "/apis/apps/v1/namespaces/shop/daemonsets",
    "Provisioner": "/apis/karpenter.sh/v1alpha5/provisioners",
    "AWSNodeTemplate": "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates",
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
    "PersistentVolumeClaim": "/api/v1/namespaces/shop/persistentvolumeclaims",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/shop/poddisruptionbudgets",
    "Namespace": "/api/v1/namespaces",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}


class OverHttp:
    def __init__(self, url: str) -> None:
        self.api: KubeApi = connect_endpoint(url, "", lambda: "token")
        self.cluster: Cluster = KubeCluster("c1", self.api, now=lambda: NOW)
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        for definition in _definitions():
            self.apply(definition)

    def apply(self, raw: dict[str, Any]) -> None:
        namespace = raw["metadata"].get("namespace", "shop")
        path = PLACES[raw["kind"]].replace("/shop/", f"/{namespace}/")
        reply = self.api.send("POST", path, body=raw)
        assert reply.ok, reply
        if "status" in raw:
            name = raw["metadata"]["name"]
            body = {"status": raw["status"]}
            merge = "application/merge-patch+json"
            done = self.api.send("PATCH", f"{path}/{name}/status", body=body, content_type=merge)
            assert done.ok, done

    def forbid_eviction(self, pod: str, labels: dict[str, str]) -> None:
        self.apply(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"namespace": "shop", "name": "budget"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
                "status": {
                    "disruptionsAllowed": 0,
                    "currentHealthy": 1,
                    "desiredHealthy": 1,
                    "expectedPods": 1,
                    "observedGeneration": 1,
                },
            }
        )

    def attach(self, name: str, node: str, volume: str) -> None:
        self.apply(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": name},
                "spec": {
                    "attacher": "ebs.csi.aws.com",
                    "nodeName": node,
                    "source": {"persistentVolumeName": volume},
                },
            }
        )

    def kube_events(self) -> dict[tuple[str, str], int]:
        items = self.api.get("/api/v1/events")["items"]
        return {(e["involvedObject"]["name"], e["reason"]): e["count"] for e in items}

    def condition(self, provisioner: str, kind: str = "Active") -> tuple[bool, str, str] | None:
        return self._condition(f"{PLACES['Provisioner']}/{provisioner}", kind)

    def pool_condition(self, pool: str) -> tuple[bool, str, str] | None:
        return self._condition(f"{PLACES['NodePool']}/{pool}", "Ready")

    def _condition(self, path: str, kind: str) -> tuple[bool, str, str] | None:
        raw = self.api.get(path)
        found = (raw.get("status") or {}).get("conditions") or []
        said = [
            (c["status"] == "True", c["reason"], c["message"]) for c in found if c["type"] == kind
        ]
        return next(iter(said), None)

    def template_status(self, name: str, *, of_pool: bool = False) -> TemplateStatus | None:
        place = PLACES["EC2NodeClass" if of_pool else "AWSNodeTemplate"]
        raw = self.api.get(f"{place}/{name}").get("status")
        if not raw:
            return None
        (ready,) = (entry for entry in raw["conditions"] if entry["type"] == "Ready")
        return TemplateStatus(
            subnets=tuple(
                Subnet(
                    subnet_id=subnet["id"],
                    zone=subnet["zone"],
                    free_addresses=0,
                    zone_id=subnet.get("zoneID", ""),
                )
                for subnet in raw["subnets"]
            ),
            security_groups=tuple(security_group["id"] for security_group in raw["securityGroups"]),
            images=tuple(
                FoundImage(
                    image_id=entry["id"],
                    name=entry["name"],
                    labels={
                        need["key"]: need["values"][0]
                        for need in entry["requirements"]
                        if need["operator"] == "In"
                    },
                    has=_keys(entry, "Exists"),
                    lacks=_keys(entry, "DoesNotExist"),
                    deprecated=entry.get("deprecated", False),
                )
                for entry in raw["amis"]
            ),
            instance_profile=raw.get("instanceProfile", ""),
            problems=() if ready["status"] == "True" else tuple(ready["message"].split("; ")),
        )

    def replace_pod(self, raw: dict[str, Any]) -> None:
        path = f"{PLACES['Pod']}/{raw['metadata']['name']}"
        body = {"gracePeriodSeconds": 0}
        assert self.api.send("DELETE", path, body=body).ok
        self.apply(raw)


def pod(name: str, *, node: str = "", phase: str = "", **more: Any) -> dict[str, Any]:
    containers = [
        {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "250m"}}},
    ]
    spec: dict[str, Any] = {"containers": containers, **more}
    if node:
        spec["nodeName"] = node
    metadata = {"namespace": "shop", "name": name, "labels": {"app": name}}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    if not phase:
        return raw
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    return {**raw, "status": {"phase": phase, "conditions": [ready]}}


def manifest(
    name: str = "n1", finalizers: tuple[str, ...] = (FINALIZER,), taints: tuple[Taint, ...] = ()
) -> NodeManifest:
    return NodeManifest(
        name=name,
        labels={keys.PROVISIONER_NAME: "default", keys.ZONE: "us-west-2a"},
        annotations={keys.SLOT: "p/0/0"},
        taints=(
            Taint(key=keys.NOT_READY_TAINT, effect=Effect.NO_SCHEDULE),
            Taint(key="team", value="a", effect=Effect.NO_SCHEDULE),
            *taints,
        ),
        finalizers=finalizers,
        provider_id="aws:///us-west-2a/i-0123",
        owner=None,
        capacity=Resources.of(cpu=2000, memory=2**33, pods=29),
        allocatable=Resources.of(cpu=1930, memory=2**33 - 1, pods=29),
    )


def provisioner(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": name},
        "spec": spec,
    }


def node_class(name: str = "nodes", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"id": "subnet-1"}],
            "securityGroupSelectorTerms": [{"id": "sg-1"}],
            "instanceProfile": "workers",
            **spec,
        },
    }


def node_pool(name: str, class_name: str = "nodes", **spec: Any) -> dict[str, Any]:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class_name}
    shape = {"nodeClassRef": reference, "requirements": [], **spec}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": shape}},
    }


def find(world: World, name: str) -> Pod:
    found = world.cluster.pod("shop", name)
    assert found is not None
    return found


def find_node(world: World, name: str = "n1") -> Node:
    found = world.cluster.node(name)
    assert found is not None
    return found
