"""What is left out of a dump changes no plan and hides no mistake."""

from datetime import date
from typing import Any

import pytest

from functions.cli.plan.reading.documents import Document, InvalidDocumentError
from functions.cli.plan.reading.kept_fields import KeptFields
from functions.cli.plan.reading.snapshot import read_snapshot
from shared.instance_types.catalog import embedded_catalog

CATALOG = embedded_catalog()
CONTAINER = {
    "name": "a",
    "image": "web",
    "env": [{"name": "A", "value": "b"}],
    "ports": [{"containerPort": 80, "hostPort": 80}],
    "resources": {"requests": {"cpu": "1"}},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
SPEC: dict[str, Any] = {
    "containers": [CONTAINER],
    "initContainers": [{**CONTAINER, "restartPolicy": "Always"}],
    "nodeName": "n",
    "priorityClassName": "high",
    "runtimeClassName": "slow",
    "dnsPolicy": "Default",
    "volumes": [
        {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "b", "configMap": {"name": "d"}},
    ],
}


def document(kind: str, version: str = "v1", name: str = "a", **fields: Any) -> Document:
    metadata = {
        "name": name,
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "b": "c"},
        "managedFields": [{}],
    }
    raw = {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
    return Document(where="f", raw=raw)


def pod(name: str = "a", **spec: Any) -> Document:
    status = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": name},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [{"name": "a", "image": "web", "allocatedResources": {"cpu": "2"}}],
    }
    return document("Pod", name=name, spec={**SPEC, **spec}, status=status)


def test_a_plan_of_a_dump_is_that_of_what_is_kept_of_it() -> None:
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "30"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["web"]}],
    }
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**SPEC, "nodeName": ""}}
    written = [
        Document(where="f", raw={**NODE, "status": status}),
        pod(),
        pod("b", nodeName=""),
        document("Deployment", "apps/v1", spec={"replicas": 2, "template": template}),
        document("DaemonSet", "apps/v1", spec={"template": template}),
        document("PriorityClass", "scheduling.k8s.io/v1", name="high", value=7),
        document(
            "RuntimeClass", "node.k8s.io/v1", name="slow", overhead={"podFixed": {"cpu": "1"}}
        ),
        document("CronJob", "batch/v1", spec={"jobTemplate": {"spec": {"template": template}}}),
        document("Rollout", "argoproj.io/v1", spec={"replicas": 1, "template": template}),
        document("LimitRange", spec={"limits": [{"type": "Container", "min": {"memory": "1Gi"}}]}),
        document("ResourceQuota", spec={"hard": {"pods": "3"}}),
        document("ConfigMap", data={"a": "b"}),
    ]
    kept = KeptFields()
    fewer = [kept.kept_document(entry) for entry in written]
    assert read_snapshot(fewer, CATALOG) == read_snapshot(written, CATALOG)
    assert fewer[-1].raw.keys() == {"apiVersion", "kind", "metadata"}
    assert fewer[0].raw["status"].keys() == {"allocatable", "conditions"}
    assert fewer[1].raw["metadata"] == {"name": "a", "annotations": {"b": "c"}}


def test_equal_parts_are_kept_once() -> None:
    kept = KeptFields()
    first, second = (kept.kept_document(pod(name)).raw for name in ("a", "b"))
    assert first["spec"]["containers"] is second["spec"]["containers"]
    assert first["status"]["conditions"] is second["status"]["conditions"]
    assert "env" not in first["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (pod(nodeSelecter={}), "spec.nodeSelecter"),
        (pod(containers=3), "spec.containers"),
        (pod(containers=["a"]), "spec.containers"),
        (pod(containers=[{**CONTAINER, "resorces": {}}]), "spec.containers[0].resorces"),
        (pod(volumes="a"), "spec.volumes"),
        (pod(tolerations=[{"a": date(2026, 11, 25)}]), "spec.tolerations[0].a"),
        (document("Pod", spec="a"), "spec"),
        (document("Pod", spec=SPEC, status=3), ""),
        (document("Node", status="a"), "status"),
        (document("Job", "batch/v1", spec=3), "spec"),
        (document("Job", "batch/v1", spec={"template": 3}), "spec.template"),
        (document("Deployment", "apps/v1", spec={"template": {"spec": 3}}), "spec.template.spec"),
        (Document(where="f", raw={"apiVersion": "v1", "kind": "Pod"}), "metadata.name"),
    ],
    ids=lambda value: value.name or "no name" if isinstance(value, Document) else value or "none",
)
def test_mistakes_are_found_in_what_is_kept(wrong: Document, told: str) -> None:
    def said(entry: Document) -> str:
        try:
            return " ".join(read_snapshot([entry], CATALOG).notes)
        except InvalidDocumentError as error:
            return str(error)

    assert said(KeptFields().kept_document(wrong)) == said(wrong)
    assert told in said(wrong)
