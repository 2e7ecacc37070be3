"""Provisioner manifests, right and wrong, and what the API server says of them."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from infra.local.kube.kinds import Resource, custom_resources
from infra.local.kube.schemas.custom_resources import Schemas

PATH = Path(__file__).resolve().parents[3] / "infra" / "cluster" / "provisioners.yaml"
CRD: dict[str, Any] = yaml.safe_load(PATH.read_text())
(VERSION,) = CRD["spec"]["versions"]
SCHEMA: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]
SPEC: dict[str, Any] = SCHEMA["properties"]["spec"]
(RESOURCE,) = custom_resources(CRD)

WHOLE: dict[str, Any] = {
    "requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": ["m5.metal"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]},
        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]},
        {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"},
        {"key": "example.com/team", "operator": "Exists"},
    ],
    "labels": {"example.com/team": "a", "plain": ""},
    "annotations": {"example.com/note": "any text at all"},
    "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
    "startupTaints": [{"key": "example.com/agent", "effect": "NoExecute"}],
    "kubeletConfiguration": {
        "clusterDNS": ["10.0.1.100"],
        "maxPods": 20,
        "systemReserved": {"cpu": "100m", "memory": "100Mi", "ephemeral-storage": "1Gi"},
        "kubeReserved": {"cpu": 1},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"nodefs.available": "10%"},
        "evictionSoftGracePeriod": {"nodefs.available": "1m30s"},
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80,
    },
    "provider": {
        "apiVersion": "extensions.karpenter.sh/v1alpha1",
        "kind": "AWS",
        "instanceProfile": "nodes",
        "subnetSelector": {"karpenter.sh/discovery": "prod"},
        "securityGroupSelector": {"aws-ids": "sg-1,sg-2"},
        "tags": {"cost-centre": "7"},
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
        "blockDeviceMappings": [
            {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi", "volumeType": "gp3"}}
        ],
    },
    "limits": {"resources": {"cpu": 1000, "memory": "1000Gi", "nvidia.com/gpu": "8"}},
    "ttlSecondsAfterEmpty": 30,
    "ttlSecondsUntilExpired": 2592000,
    "weight": 10,
}


def document(spec: Any, **beside: Any) -> dict[str, Any]:
    """Return a Provisioner with this spec and further fields beside it."""
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": deepcopy(spec),
        **beside,
    }


def complaints(manifest: dict[str, Any], resource: Resource = RESOURCE) -> list[str]:
    """Return what the API server says of a document, as `field: message`."""
    given = deepcopy(manifest)
    schemas = Schemas()
    schemas.prune_and_default(resource, given)
    return [f"{field}: {why}" for _, why, field in schemas.complaints(resource, given)]


def changed(path: str, value: Any) -> dict[str, Any]:
    spec = deepcopy(WHOLE)
    *parents, last = path.split("/")
    part = spec
    for parent in parents:
        part = part.setdefault(parent, {})
    part[last] = value
    return spec


def requirement(key: str, operator: str | None, *values: str) -> dict[str, Any]:
    one: dict[str, Any] = {"key": key}
    if operator is not None:
        one["operator"] = operator
    if values:
        one["values"] = list(values)
    return {"requirements": [one]}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("unknown operator", requirement("a", "Equals", "b"), "supported values"),
    ("no operator", requirement("node.k8s.aws/instance-type", None, "m5.large"), "Required"),
    (
        "a key with a leading space",
        requirement(" karpenter.sh/capacity-type", "In", "spot"),
        "after a domain and a slash if you like, without spaces",
    ),
    (
        "a key of the Kubernetes domains",
        requirement("kubernetes.io/hostname", "In", "a"),
        "belongs to Kubernetes, Karpenter or Dovetail",
    ),
    (
        "the provisioner's own label",
        requirement("karpenter.sh/provisioner-name", "Exists"),
        "belongs to Kubernetes, Karpenter or Dovetail",
    ),
    ("In without values", requirement("a", "In"), "In and NotIn need values"),
    ("NotIn without values", requirement("a", "NotIn"), "In and NotIn need values"),
    ("Exists with values", requirement("a", "Exists", "b"), "take no values"),
    ("Gt with a word", requirement("a", "Gt", "many"), "Gt and Lt need one value"),
    ("Gt with a negative", requirement("a", "Gt", "-1"), "should match"),
    ("Lt with two values", requirement("a", "Lt", "1", "2"), "Gt and Lt need one value"),
    ("a restricted label", changed("labels", {"k8s.io/x": "y"}), "belongs to Kubernetes"),
    (
        "an annotation that steers drains",
        changed("annotations", {"dovetail.dev/drain-deadline": "1999-01-01T00:00:00Z"}),
        "only karpenter.sh/do-not-consolidate may be set",
    ),
    ("a label key with a space", changed("labels", {" team": "a"}), "without spaces"),
    ("a label value with a space", changed("labels", {"team": "a b"}), "should match"),
    (
        "an unknown taint effect",
        changed("taints", [{"key": "a", "effect": "Never"}]),
        "supported values",
    ),
    ("a taint without effect", changed("taints", [{"key": "a"}]), "Required"),
    (
        "a taint twice",
        changed("startupTaints", WHOLE["taints"]),
        "both in taints and in startupTaints",
    ),
    ("a negative ttl", changed("ttlSecondsAfterEmpty", -1), "greater than or equal to 0"),
    ("weight 0", changed("weight", 0), "greater than or equal to 1"),
    ("weight 101", changed("weight", 101), "less than or equal to 100"),
    (
        "two ways to remove empty nodes",
        changed("consolidation", {"enabled": True}),
        "exclude each other",
    ),
    ("both templates", changed("providerRef", {"name": "x"}), "either provider or providerRef"),
    (
        "a limit that is no quantity",
        changed("limits/resources", {"cpu": "many"}),
        "should match",
    ),
    (
        "a launch template and an image family",
        changed("provider", {"launchTemplate": "mine", "amiFamily": "AL2023"}),
        "launchTemplate already decides",
    ),
    ("an image family we do not make", changed("provider/amiFamily", "Windows"), "supported"),
    (
        "ids and a tag",
        changed("provider/subnetSelector", {"aws-ids": "subnet-1", "a": "b"}),
        "ids leave nothing to select",
    ),
    ("an empty tag name", changed("provider/subnetSelector", {"": "b"}), "must not be empty"),
    (
        "a reserved tag",
        changed("provider/tags", {"dovetail.dev/cluster": "b"}),
        "set by the autoscaler",
    ),
    (
        "a metadata option",
        changed("provider/metadataOptions", {"httpTokens": "yes"}),
        "supported values",
    ),
    (
        "a disk without size",
        changed("provider/blockDeviceMappings", [{"deviceName": "/dev/xvda", "ebs": {}}]),
        "write volumeSize or snapshotID",
    ),
    (
        "a signal that does not exist",
        changed("kubeletConfiguration/evictionHard", {"memory": "5%"}),
        "signals are memory.available",
    ),
    (
        "a soft threshold without grace",
        changed("kubeletConfiguration/evictionSoft", {"memory.available": "5%"}),
        "needs a grace period",
    ),
    (
        "thresholds the wrong way round",
        changed("kubeletConfiguration/imageGCLowThresholdPercent", 85),
        "must be above",
    ),
    (
        "a high threshold below the low one of the kubelet",
        changed("kubeletConfiguration", {"imageGCHighThresholdPercent": 80}),
        "must be above",
    ),
    (
        "a low threshold above the high one of the kubelet",
        changed("kubeletConfiguration", {"imageGCLowThresholdPercent": 85}),
        "must be above",
    ),
    (
        "a reservation of pods",
        changed("kubeletConfiguration/kubeReserved", {"pods": "1"}),
        "can be reserved",
    ),
]
