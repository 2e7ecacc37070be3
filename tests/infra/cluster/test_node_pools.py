"""The CRDs of NodePools and EC2NodeClasses: what they accept and refuse, as the functions do."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.kube.kinds import Resource, custom_resources
from shared.manifests.custom_resources.node_classes import read_node_class
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.problems import FieldProblem, InvalidProvisionerError
from tests.infra.cluster.provisioner_documents import complaints

FOLDER = Path(__file__).resolve().parents[3] / "infra" / "cluster" / "node_pools"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
CLASS: dict[str, Any] = {
    "amiFamily": "AL2023",
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}, {"id": "subnet-0a1b"}],
    "securityGroupSelectorTerms": [{"tags": {"team": "*"}}, {"id": "sg-1"}, {"name": "nodes"}],
    "role": "nodes",
    "userData": "#!/bin/bash\necho\n",
    "tags": {"cost-centre": "7"},
    "kubelet": {"maxPods": 40, "systemReserved": {"cpu": "100m"}, "clusterDNS": ["10.0.0.10"]},
    "blockDeviceMappings": [
        {
            "deviceName": "/dev/xvda",
            "rootVolume": True,
            "ebs": {"volumeSize": "100Gi", "volumeType": "gp3", "iops": 4000},
        }
    ],
    "instanceStorePolicy": "RAID0",
    "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
    "detailedMonitoring": True,
    "associatePublicIPAddress": False,
    "context": "ctx-1",
}
NODE: dict[str, Any] = {
    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    "requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gte", "values": ["4"]},
        {"key": "karpenter.k8s.aws/instance-memory", "operator": "Lt", "values": ["65536"]},
        {
            "key": "karpenter.k8s.aws/instance-family",
            "operator": "In",
            "values": ["c6i", "m6i", "r6i"],
            "minValues": 2,
        },
    ],
    "taints": [TAINT],
    "startupTaints": [{"key": "example.com/agent", "effect": "NoExecute"}],
    "expireAfter": "336h",
    "terminationGracePeriod": "1h30m",
}
POOL: dict[str, Any] = {
    "template": {
        "metadata": {
            "labels": {"team": "a"},
            "annotations": {"karpenter.sh/do-not-disrupt": "true"},
        },
        "spec": NODE,
    },
    "disruption": {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "1m",
        "budgets": [
            {"nodes": "10%", "reasons": ["Empty"]},
            {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"},
        ],
    },
    "limits": {"cpu": 1000, "memory": "1000Gi", "nodes": "50"},
    "weight": 10,
}


def resource(name: str) -> Resource:
    (found,) = custom_resources(yaml.safe_load((FOLDER / name).read_text()))
    return found


POOLS, CLASSES = resource("node_pools.yaml"), resource("node_classes.yaml")


def node_class(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": deepcopy(spec),
    }


def node_pool(spec: dict[str, Any], name: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": deepcopy(spec),
    }


def pool_of(**node: Any) -> dict[str, Any]:
    return {**POOL, "template": {"spec": {**NODE, **node}}}


def class_refused_by_functions(raw: dict[str, Any]) -> bool:
    problems: list[FieldProblem] = []
    read_node_class(raw, problems)
    return bool(problems)


def pool_refused_by_functions(raw: dict[str, Any]) -> bool:
    try:
        decode_node_pool(raw, {"default": node_class(CLASS)})
    except InvalidProvisionerError:
        return True
    return False


def test_documents_with_everything_pass_here_and_in_the_functions() -> None:
    assert complaints(node_class(CLASS), CLASSES) == []
    assert complaints(node_pool(POOL), POOLS) == []
    assert not class_refused_by_functions(node_class(CLASS))
    assert not pool_refused_by_functions(node_pool(POOL))


def test_documents_with_little_pass() -> None:
    terms = ("amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms", "role")
    assert complaints(node_class({name: CLASS[name] for name in terms}), CLASSES) == []
    little = {"nodeClassRef": NODE["nodeClassRef"], "requirements": []}
    assert complaints(node_pool({"template": {"spec": little}}), POOLS) == []


def test_a_pool_of_another_provider_passes() -> None:
    foreign = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    assert complaints(node_pool(pool_of(nodeClassRef=foreign)), POOLS) == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"networkInterfaces": [{"networkCardIndex": 0}]}, "networkInterfaces: remove it"),
        ({"ipPrefixCount": 1}, "let the VPC CNI assign prefixes"),
        ({"cpuOptions": {"nestedVirtualization": "enabled"}}, "cpuOptions: remove it"),
        ({"capacityReservationSelectorTerms": [{"id": "cr-1"}]}, "capacity reservations"),
        ({"placementGroupSelector": {"name": "x"}}, "placement groups"),
        ({"connectionTracking": {"udpTimeout": 30}}, "connectionTracking: remove it"),
        ({"instanceProfile": "mine"}, "exactly one of role and instanceProfile"),
        ({"amiFamily": "Windows2022"}, "supported values"),
        ({"amiSelectorTerms": []}, "at least 1"),
        ({"amiSelectorTerms": [{"alias": "al2023@latest"}, {"id": "ami-1"}]}, "the only term"),
        ({"amiSelectorTerms": [{"id": "ami-1", "name": "x"}]}, "id leaves nothing to select"),
        ({"amiSelectorTerms": [{"owner": "self"}]}, "write alias, id, name"),
        ({"amiSelectorTerms": [{"alias": "windows2022@latest"}]}, "should match"),
        ({"subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}]}, "exactly one of"),
        ({"subnetSelectorTerms": [{"id": "sg-1"}]}, "should match"),
        ({"securityGroupSelectorTerms": [{}]}, "exactly one of"),
        ({"tags": {"karpenter.sh/nodepool": "x"}}, "set by the autoscaler or by AWS"),
        ({"tags": {"kubernetes.io/cluster/prod": "owned"}}, "set by the autoscaler or by AWS"),
        ({"kubelet": {"evictionSoft": {"memory.available": "5%"}}}, "needs a grace period"),
        ({"instanceStorePolicy": "RAID1"}, "supported values"),
    ],
)
def test_a_wrong_class_is_refused(spec: dict[str, Any], words: str) -> None:
    raw = node_class({**CLASS, **spec})
    assert [said for said in complaints(raw, CLASSES) if words in said], complaints(raw, CLASSES)
    assert class_refused_by_functions(raw)


def test_a_second_root_volume_is_refused() -> None:
    other = {"deviceName": "/dev/xvdb", "rootVolume": True, "ebs": {"volumeSize": "1Gi"}}
    raw = node_class({**CLASS, "blockDeviceMappings": [*CLASS["blockDeviceMappings"], other]})
    assert [said for said in complaints(raw, CLASSES) if "is the root volume" in said]
    assert class_refused_by_functions(raw)


def test_images_without_alias_need_a_family() -> None:
    spec = {**CLASS, "amiSelectorTerms": [{"name": "mine-*"}]}
    assert complaints(node_class(spec), CLASSES) == []
    del spec["amiFamily"]
    assert [said for said in complaints(node_class(spec), CLASSES) if "write amiFamily" in said]
    assert class_refused_by_functions(node_class(spec))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({**POOL, "replicas": 3}, "replicas: remove it"),
        ({**POOL, "weight": 0}, "greater than or equal to 1"),
        ({**POOL, "disruption": {"budgets": [{"nodes": 3}]}}, "string"),
        ({**POOL, "disruption": {"budgets": [{"nodes": "110%"}]}}, "should match"),
        ({**POOL, "disruption": {"budgets": [{"duration": "8h"}]}}, "each needs the other"),
        ({**POOL, "disruption": {"consolidateAfter": "1d"}}, "should match"),
        ({**POOL, "disruption": {"consolidationPolicy": "Always"}}, "supported values"),
        (pool_of(expireAfter="30d"), "should match"),
        (pool_of(terminationGracePeriod="Never"), "should match"),
        (pool_of(nodeClassRef={"name": "default"}), "equired"),
        (pool_of(startupTaints=[{"key": "a"}]), "equired"),
        (pool_of(requirements=[{"key": "a", "operator": "In"}]), "In and NotIn need values"),
        (
            pool_of(requirements=[{"key": "a", "operator": "Gte", "values": ["x"]}]),
            "Gt, Lt, Gte and Lte need one value",
        ),
        (
            pool_of(requirements=[{"key": "a", "operator": "In", "values": ["x"], "minValues": 2}]),
            "needs at least that many values",
        ),
        (
            pool_of(requirements=[{"key": "karpenter.sh/nodepool", "operator": "Exists"}]),
            "this key belongs to Karpenter or Dovetail",
        ),
        (
            {"template": {"metadata": {"labels": {"dovetail.dev/x": "y"}}, "spec": NODE}},
            "this key belongs to Karpenter or Dovetail",
        ),
        (
            {"template": {"metadata": {"annotations": {"dovetail.dev/x": "y"}}, "spec": NODE}},
            "karpenter.sh/do-not-disrupt may be set",
        ),
    ],
)
def test_a_wrong_pool_is_refused(spec: dict[str, Any], words: str) -> None:
    raw = node_pool(spec)
    assert [said for said in complaints(raw, POOLS) if words in said], complaints(raw, POOLS)
    assert pool_refused_by_functions(raw)


def test_a_name_that_is_no_label_is_refused() -> None:
    raw = node_pool(POOL, name="a" * 64)
    assert [said for said in complaints(raw, POOLS) if "at most 63 characters" in said]
    assert pool_refused_by_functions(raw)


def test_the_two_are_applied_by_a_choice_of_their_own() -> None:
    everywhere = yaml.safe_load((FOLDER.parent / "kustomization.yaml").read_text())["resources"]
    chosen = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert not [name for name in everywhere if "node_pools" in name]
    assert chosen == ["node_classes.yaml", "node_pools.yaml"]
