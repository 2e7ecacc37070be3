"""Volumes, namespaces and runtimes in snapshots made of files alone."""

import json
from typing import Any

from functions.cli.plan.reading.documents import read_documents
from functions.cli.plan.reading.snapshot import OfflineSnapshot, read_snapshot
from shared.instance_types.catalog import Catalog
from shared.model import labels as keys
from shared.model.kubernetes.volumes import EBS_DRIVER, attachable
from shared.model.resources import Resources
from tests import builders as make
from tests.unit.manifests.volumes.storage_documents import (
    ZONE,
    claim,
    in_zones,
    storage_class,
    volume,
)

EBS = attachable(EBS_DRIVER)
CATALOG = Catalog(
    region="us-east-1", source="a test", date="2026-01-01", instance_types=make.CATALOG
)
VERSIONS = {
    "Pod": "v1",
    "PersistentVolumeClaim": "v1",
    "PersistentVolume": "v1",
    "Namespace": "v1",
    "Node": "v1",
    "StorageClass": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
    "RuntimeClass": "node.k8s.io/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Provisioner": "karpenter.sh/v1alpha5",
}


def read(*raws: dict[str, Any]) -> OfflineSnapshot:
    listed = [{"apiVersion": VERSIONS[raw["kind"]], **raw} for raw in raws]
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": listed})
    return read_snapshot(read_documents("f", text.encode()), CATALOG)


def pod(name: str, *claims: str, **spec: Any) -> dict[str, Any]:
    volumes = [{"name": value, "persistentVolumeClaim": {"claimName": value}} for value in claims]
    inside = {"containers": [{"name": "c"}], "volumes": volumes, **spec}
    return {"kind": "Pod", "metadata": {"namespace": "shop", "name": name}, "spec": inside}


def node(name: str = "n1") -> dict[str, Any]:
    labels = {keys.INSTANCE_TYPE: "m5.large", keys.ZONE: ZONE}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def csi_node(count: int, name: str = "n1") -> dict[str, Any]:
    drivers = [{"name": EBS_DRIVER, "allocatable": {"count": count}}]
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


def test_attachments_are_counted_when_a_waiting_pod_has_a_volume() -> None:
    found = read(
        node(),
        csi_node(3),
        pod("standing", "used", nodeName="n1"),
        pod("waiting", "data"),
        claim("used", spec={"volumeName": "pv"}),
        volume("pv", in_zones(ZONE)),
        claim(spec={"storageClassName": "gp3"}),
        storage_class("gp3", ZONE),
    ).snapshot
    (waiting,) = found.pending
    assert waiting.scheduling.requests[EBS] == 1
    assert waiting.scheduling.volume_terms == ((make.needs(keys.ZONE, "In", ZONE),),)
    assert found.nodes[0].allocatable[EBS] == 2
    assert found.instance_types[0].capacity[EBS] == 25


def test_nothing_is_counted_without_such_a_pod() -> None:
    found = read(node(), csi_node(3), pod("a"), pod("b", "standing", nodeName="n1")).snapshot
    assert found.nodes[0].allocatable[EBS] == 0
    assert found.instance_types == make.CATALOG


def test_namespaces_have_the_labels_they_are_given() -> None:
    raw = {"kind": "Namespace", "metadata": {"name": "shop", "labels": {"tier": "gold"}}}
    found = read(raw, pod("a")).snapshot
    assert found.namespaces == {"shop": {"tier": "gold", "kubernetes.io/metadata.name": "shop"}}


def test_pods_take_the_overhead_of_their_runtime_class() -> None:
    runtime = {
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "100m"}},
    }
    template = {
        "metadata": {"labels": {"app": "w"}},
        "spec": {"runtimeClassName": "kata", "containers": [{"name": "c"}]},
    }
    workload = {
        "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "w"},
        "spec": {"template": template},
    }
    daemons = {**workload, "kind": "DaemonSet"}
    found = read(runtime, pod("a", runtimeClassName="kata"), workload, daemons).snapshot
    expected = Resources.of(cpu=100, pods=1)
    assert [other_pod.scheduling.requests for other_pod in found.pending] == [expected, expected]
    assert found.daemonsets[0].scheduling.requests == expected


def test_plan_notes_a_requirement_that_is_probably_misspelled() -> None:
    wanted = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.lrage"]}
    misspelled = {
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {"requirements": [wanted]},
    }
    (note,) = read(misspelled).notes
    assert note == (
        "Provisioner default: requirement node.kubernetes.io/instance-type: "
        "no instance type here has m5.lrage; did you mean m5.large?"
    )


def test_what_never_acts_is_reported() -> None:
    daemons = {
        "kind": "DaemonSet",
        "metadata": {"namespace": "shop", "name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "other"}},
            "template": {"spec": {"containers": [{"name": "c"}]}},
        },
    }
    limited = {
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {"limits": {"resources": {"gpu": 3}}},
    }
    found = read(daemons, limited)
    assert found.snapshot.daemonsets == ()
    first, *_, second = found.notes
    assert first.startswith("Provisioner default: spec.limits.resources.gpu: 3: no instance has")
    assert second == (
        "DaemonSet shop/d makes no pods, left out: "
        "spec.selector does not select the labels of spec.template"
    )
