"""Draws pairs of a NodePool and an EC2NodeClass as people publish them.

The shares are those of 173 NodePools and 101 EC2NodeClasses in public repositories (read
2026-08), in percent of documents: which fields they have, which values, and which mistakes.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

SEED: Final = 19
PAIRS: Final = 60
_CLASS_REF: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}
_AUTO_MODE: Final = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
# Fields of a NodePool, in percent of documents.
POOL: Final[Mapping[str, int]] = {
    "disruption": 85,
    "limits.cpu": 76,
    "labels": 68,
    "limits.memory": 43,
    "taints": 41,
    "expireAfter": 31,
    "weight": 24,
    "budgets": 19,
    "auto mode": 13,
    "startupTaints": 5,
    "limits.gpu": 4,
    "limits.nodes": 2,
    "terminationGracePeriod": 2,
    "minValues": 1,
    "annotations": 1,
}
# Mistakes and fields beyond what Dovetail does, likewise.
POOL_MISTAKES: Final[Mapping[str, int]] = {
    "kubelet in the pool": 5,
    "replicas": 2,
    "no consolidateAfter": 2,
    "nodeClassRef.apiVersion instead of group": 1,
    "policy WhenUnderutilized": 1,
    "expireAfter 720h | Never": 1,
}
# Requirements, in percent of repositories: key, operator and values.
REQUIREMENTS: Final[Sequence[tuple[int, str, str, Sequence[Sequence[str]]]]] = (
    (95, "karpenter.sh/capacity-type", "In", (["on-demand"], ["spot"], ["spot", "on-demand"])),
    (86, "kubernetes.io/arch", "In", (["amd64"], ["arm64"], ["amd64", "arm64"])),
    (43, "karpenter.k8s.aws/instance-category", "In", (["c", "m", "r"], ["m"], ["g", "p"])),
    (40, "node.kubernetes.io/instance-type", "In", (["m5.large", "m5.xlarge"], ["g5.xlarge"])),
    (40, "kubernetes.io/os", "In", (["linux"],)),
    (40, "karpenter.k8s.aws/instance-generation", "Gt", (["2"], ["4"], ["5"])),
    (31, "karpenter.k8s.aws/instance-family", "In", (["m5", "c5"], ["m7g", "c7g", "r7g"])),
    (29, "karpenter.k8s.aws/instance-size", "NotIn", (["nano", "micro"], ["metal"])),
    (21, "karpenter.k8s.aws/instance-cpu", "Gt", (["3"], ["7"])),
    (17, "topology.kubernetes.io/zone", "In", (["us-east-1a", "us-east-1b"],)),
    (12, "karpenter.k8s.aws/instance-hypervisor", "In", (["nitro"],)),
    (5, "example.com/team", "Exists", ([],)),
)
# Fields of an EC2NodeClass, in percent of documents.
CLASS: Final[Mapping[str, int]] = {
    "role": 86,
    "amiFamily": 45,
    "blockDeviceMappings": 40,
    "tags": 35,
    "userData": 32,
    "instanceStorePolicy": 28,
    "metadataOptions": 19,
    "associatePublicIPAddress": 3,
    "kubelet": 2,
    "detailedMonitoring": 1,
}
CLASS_MISTAKES: Final[Mapping[str, int]] = {
    "networkInterfaces": 3,
    "alias ubuntu@latest": 1,
    "alias al2@lates": 1,
}
# How images are named: weight, terms, and the family that the terms need.
_IMAGES: Final[Sequence[tuple[int, list[dict[str, Any]], str]]] = (
    (41, [{"alias": "al2023@latest"}], ""),
    (9, [{"alias": "bottlerocket@latest"}], ""),
    (5, [{"alias": "al2@latest"}], ""),
    (6, [{"alias": "al2023@v20260120"}], ""),
    (8, [{"id": "ami-0123456789abcdef0"}], "AL2023"),
    (3, [{"name": "amazon-eks-node-al2023-*", "owner": "amazon"}], "AL2023"),
    (1, [{"tags": {"karpenter.sh/discovery": "demo"}}, {"ssmParameter": "/mine"}], "Custom"),
)
_DISCOVERY: Final = {"karpenter.sh/discovery": "demo"}
_FAMILIES: Final = {"al2": "AL2", "al2023": "AL2023", "bottlerocket": "Bottlerocket"}
_ROLE: Final = "KarpenterNodeRole-demo"
_DISK: Final = "/dev/xvda"
_SCRIPT: Final = "#!/bin/bash\necho hello > /etc/motd\n"
_SETTINGS: Final = '[settings.kernel]\nlockdown = "integrity"\n'


def pairs(seed: int = SEED, count: int = PAIRS) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return pairs of a NodePool and its EC2NodeClass; the same seed gives the same ones."""
    random = Random(seed)
    return [(_pool(random, number), _class(random, number)) for number in range(count)]


def _drawn(random: Random, shares: Mapping[str, int]) -> set[str]:
    return {name for name, percent in shares.items() if random.randrange(100) < percent}


def _where(has: set[str], *entries: tuple[str, str, Any]) -> dict[str, Any]:
    """Return the fields that a document has: of (share, field, value) the last one counts."""
    return {field: value for share, field, value in entries if share in has}


def _pool(random: Random, number: int) -> dict[str, Any]:
    has = _drawn(random, POOL) | _drawn(random, POOL_MISTAKES)
    name = f"pair-{number:02}"
    ref = dict(_AUTO_MODE) if "auto mode" in has else {**_CLASS_REF, "name": name}
    if "nodeClassRef.apiVersion instead of group" in has:
        ref["apiVersion"] = f"{ref.pop('group')}/v1"
    shape = {
        "nodeClassRef": ref,
        "requirements": _requirements(random, has),
        **_where(
            has,
            ("taints", "taints", [_taint("dedicated", "NoSchedule")]),
            ("startupTaints", "startupTaints", [_taint("node.cilium.io/wait", "NoExecute")]),
            ("expireAfter", "expireAfter", random.choice(("720h", "720h", "168h", "Never"))),
            ("expireAfter 720h | Never", "expireAfter", "720h | Never"),
            ("terminationGracePeriod", "terminationGracePeriod", random.choice(("1h", "48h"))),
            ("kubelet in the pool", "kubelet", {"maxPods": 110}),
        ),
    }
    metadata = _where(
        has,
        ("labels", "labels", {"example.com/team": "web"}),
        ("annotations", "annotations", {"example.com/owner": "web"}),
    )
    limits = _where(
        has,
        ("limits.cpu", "cpu", random.choice(("100", "1000", 1000))),
        ("limits.memory", "memory", random.choice(("1000Gi", "400Gi"))),
        ("limits.gpu", "nvidia.com/gpu", random.choice((8, "16"))),
        ("limits.nodes", "nodes", random.choice(("10", 20))),
    )
    spec = {
        "template": {"spec": shape, **({"metadata": metadata} if metadata else {})},
        **({"limits": limits} if limits else {}),
        **_where(
            has,
            ("disruption", "disruption", _disruption(random, has)),
            ("weight", "weight", random.choice((1, 10, 50, 100))),
            ("replicas", "replicas", 2),
        ),
    }
    return _object("karpenter.sh/v1", "NodePool", name, spec)


def _taint(key: str, effect: str) -> dict[str, str]:
    return {"key": key, "value": "true", "effect": effect}


def _requirements(random: Random, has: set[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for percent, key, operator, choices in REQUIREMENTS:
        values = {"values": list(random.choice(choices))} if operator != "Exists" else {}
        if random.randrange(100) < percent:
            found.append({"key": key, "operator": operator, **values})
    if "minValues" in has:
        key = "karpenter.k8s.aws/instance-family"
        found.append({"key": key, "operator": "Exists", "minValues": 2})
    return found


def _disruption(random: Random, has: set[str]) -> dict[str, Any]:
    policy = random.choices(("WhenEmptyOrUnderutilized", "WhenEmpty"), (82, 36))[0]
    night = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}
    empty = {"nodes": "100%", "reasons": ["Empty"]}
    budgets = random.choices(
        ([{"nodes": "10%"}], [{"nodes": "0"}], [{"nodes": "20%"}, night], [empty]), (16, 8, 5, 4)
    )[0]
    after = random.choice(("1m", "1m", "30s", "5m", "0s", "Never"))
    return {
        "consolidationPolicy": policy,
        **({} if "no consolidateAfter" in has else {"consolidateAfter": after}),
        **_where(
            has,
            ("budgets", "budgets", budgets),
            ("policy WhenUnderutilized", "consolidationPolicy", "WhenUnderutilized"),
        ),
    }


def _class(random: Random, number: int) -> dict[str, Any]:
    has = _drawn(random, CLASS) | _drawn(random, CLASS_MISTAKES)
    terms, family = random.choices(
        [(terms, family) for _, terms, family in _IMAGES], [weight for weight, _, _ in _IMAGES]
    )[0]
    for mistake in ("ubuntu@latest", "al2@lates"):
        if f"alias {mistake}" in has:
            terms, family = [{"alias": mistake}], ""
            has.discard("amiFamily")
    alias = terms[0].get("alias", "").partition("@")[0]
    by_id = random.randrange(100)
    disk = {"volumeSize": "100Gi", "volumeType": "gp3", "encrypted": True}
    hops = {"httpPutResponseHopLimit": random.choice((1, 2)), "httpTokens": "required"}
    spec = {
        "amiSelectorTerms": terms,
        "subnetSelectorTerms": [{"id": "subnet-0123"}] if by_id < 1 else [{"tags": _DISCOVERY}],
        "securityGroupSelectorTerms": [{"id": "sg-0123"}] if by_id < 2 else [{"tags": _DISCOVERY}],
        **({"role": _ROLE} if "role" in has else {"instanceProfile": "nodes"}),
        **_where(
            has,
            ("amiFamily", "amiFamily", _FAMILIES.get(alias)),
            ("blockDeviceMappings", "blockDeviceMappings", [{"deviceName": _DISK, "ebs": disk}]),
            ("tags", "tags", {"team": "web", **_DISCOVERY}),
            ("userData", "userData", _SETTINGS if alias == "bottlerocket" else _SCRIPT),
            ("instanceStorePolicy", "instanceStorePolicy", "RAID0"),
            ("metadataOptions", "metadataOptions", hops),
            ("associatePublicIPAddress", "associatePublicIPAddress", False),
            ("kubelet", "kubelet", {"maxPods": 110}),
            ("detailedMonitoring", "detailedMonitoring", True),
            ("networkInterfaces", "networkInterfaces", [{"networkCardIndex": 0, "deviceIndex": 0}]),
        ),
        **({"amiFamily": family} if family else {}),
    }
    return _object("karpenter.k8s.aws/v1", "EC2NodeClass", f"pair-{number:02}", spec)


def _object(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
