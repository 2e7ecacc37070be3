"""NodePools that are refused, each with the field and what to write instead."""

from typing import Any

import pytest

from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name
from shared.manifests.problems import InvalidProvisionerError
from tests.unit.manifests.documents import CLASS_REF, node_class, node_pool, wants

CLASSES = by_name([node_class(), node_class("bad", amiFamily="Windows2022")])
SPEC = "spec.template.spec"
TAINT = {"key": "a", "effect": "NoSchedule"}


def wrong(raw: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidProvisionerError) as caught:
        decode_node_pool(raw, CLASSES)
    return [f"{problem.field}: {problem.remedy}" for problem in caught.value.problems]


def refused(raw: dict[str, Any], words: str) -> None:
    (found,) = wrong(raw)
    assert found.startswith(words), found


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        *(
            (
                wants("a", operator, *values),
                f"values: operator {operator} needs exactly one integer",
            )
            for operator, *values in (("Gt",), ("Lte", "1", "2"))
        ),
        (wants("karpenter.sh/nodepool", "Exists"), "key: this key belongs to Karpenter"),
        (
            wants("karpenter.k8s.aws/nitro-sandbox", "Exists"),
            "key: Dovetail does not know this of instance types",
        ),
        (
            wants("topology.k8s.aws/zone-id", "NotIn", "use1-az6"),
            "key: Dovetail chooses zones by their names; ask for topology.kubernetes.io/zone",
        ),
        (
            wants("node.kubernetes.io/windows-build", "In", "10.0.20348"),
            "key: all nodes of Dovetail run Linux; remove it",
        ),
        ({"operator": "Exists"}, "key: write a label of nodes"),
    ],
)
def test_a_wrong_requirement_is_refused(requirement: dict[str, Any], words: str) -> None:
    refused(node_pool({"requirements": [requirement]}), f"{SPEC}.requirements[0].{words}")


@pytest.mark.parametrize("asked", [("In", "dedicated"), ("NotIn", "default"), ("DoesNotExist",)])
def test_a_tenancy_that_machines_do_not_have_is_refused(asked: tuple[str, ...]) -> None:
    raw = node_pool({"requirements": [wants("karpenter.k8s.aws/instance-tenancy", *asked)]})
    refused(raw, f"{SPEC}.requirements: allow at least one of default")


def test_a_pool_of_windows_alone_is_refused() -> None:
    raw = node_pool({"requirements": [wants("kubernetes.io/os", "In", "windows")]})
    refused(raw, f"{SPEC}.requirements: allow at least one of linux")


@pytest.mark.parametrize("written", ["-1s", "1d", "1h Never", "", 720, "900000000h"])
def test_a_wrong_span_is_refused(written: object) -> None:
    for raw, field in (
        (node_pool({"expireAfter": written}), f"{SPEC}.expireAfter"),
        (node_pool({"terminationGracePeriod": written}), f"{SPEC}.terminationGracePeriod"),
        (node_pool(disruption={"consolidateAfter": written}), "spec.disruption.consolidateAfter"),
    ):
        refused(raw, f"{field}: write a span in h, m and s, such as 720h")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"nodes": "-1"}, "nodes: write a number of nodes, or a share"),
        ({"nodes": 1}, "nodes: write a string"),
        ({"schedule": "@never", "duration": "8h"}, "schedule: write five fields of cron"),
    ],
)
def test_a_wrong_budget_is_refused_wherever_it_is(budget: dict[str, Any], words: str) -> None:
    raw = node_pool(disruption={"budgets": [{"nodes": "10%"}, budget]})
    refused(raw, f"spec.disruption.budgets[1].{words}")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ({"kind": "EC2NodeClass", "name": "nodes"}, "group: write the group of the EC2NodeClass"),
        ({"group": "karpenter.k8s.aws", "name": "nodes"}, "kind: write the kind EC2NodeClass"),
        ({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}, "name: write the name of an EC2"),
        ({**CLASS_REF, "group": "karpenter.k8s.aws/v1"}, "group: use one of karpenter.k8s.aws"),
        (
            {**CLASS_REF, "apiVersion": "karpenter.k8s.aws/v1"},
            "apiVersion: write group: karpenter.k8s.aws instead",
        ),
        ({**CLASS_REF, "name": ""}, "name: write at least one character"),
        ({**CLASS_REF, "name": "x" * 64}, "name: write at most 63 letters"),
        ({**CLASS_REF, "name": "none"}, "name: there is no EC2NodeClass of that name; add its man"),
    ],
)
def test_a_wrong_reference_is_refused(reference: dict[str, Any], words: str) -> None:
    refused(node_pool({"nodeClassRef": reference}), f"{SPEC}.nodeClassRef.{words}")


def test_a_wrong_class_is_a_problem_of_its_pools() -> None:
    raw = node_pool({"nodeClassRef": {**CLASS_REF, "name": "bad"}})
    refused(raw, "EC2NodeClass bad.spec.amiFamily: Windows instances are not launched")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (node_pool(replicas=3), "spec.replicas: remove it: a fixed number of nodes is not kept"),
        (node_pool(requirements=[]), "spec.requirements: move it to spec.template.spec.requirem"),
        (node_pool(labels={}), "spec.labels: move it to spec.template.metadata.labels"),
        (
            node_pool(disruption={"expireAfter": "1h"}),
            "spec.disruption.expireAfter: move it to spec.template.spec.expireAfter",
        ),
        (node_pool(weight=101), "spec.weight: write a whole number from 1 to 100"),
        (node_pool(limits={"cpu": "-1"}), "spec.limits.cpu: write a quantity of 0 or more"),
        (node_pool(limits={"nodes": "some"}), "spec.limits.nodes: write a quantity"),
        (
            node_pool({"taints": [TAINT, TAINT]}),
            f"{SPEC}.taints[1].key: another taint has this key",
        ),
        (
            node_pool({"taints": [TAINT], "startupTaints": [TAINT]}),
            f"{SPEC}.startupTaints[0].key: another taint has this key",
        ),
        (
            node_pool({}, {"annotations": {"karpenter.sh/do-not-consolidate": "true"}}),
            "spec.template.metadata.annotations.karpenter.sh/do-not-consolidate: this annotation",
        ),
        ({**node_pool(), "spec": {}}, "spec.template: write the template of nodes"),
    ],
)
def test_a_wrong_field_is_refused(raw: dict[str, Any], words: str) -> None:
    refused(raw, words)


def test_a_name_that_is_no_label_value_is_refused() -> None:
    raw = node_pool()
    raw["metadata"]["name"] = "x" * 64
    refused(raw, "metadata.name: becomes a label of each node; write at most 63")
