"""Objects of a large cluster as an API server of EKS shows them, as large as those are there.

A pod has 6 kB and a node 9 kB, managed fields included. Ten pods fill a node but for less than the
pods that are added ask for, so that those need new machines.
"""

from typing import Any, Final

from shared.model import labels as keys

CLUSTER: Final = "large"
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
PODS_OF_A_NODE: Final = 10
_WORKLOADS: Final = 100
_BORN: Final = "2026-01-01T00:00:00Z"
_AMOUNTS: Final = {"cpu": "8", "memory": "31Gi", "pods": "58", "ephemeral-storage": "20Gi"}
_ROOM: Final = {"cpu": "7910m", "memory": "28Gi", "pods": "58", "ephemeral-storage": "17Gi"}

PROVISIONER: Final[dict[str, Any]] = {
    "apiVersion": "karpenter.sh/v1alpha5",
    "kind": "Provisioner",
    "metadata": {"name": "default"},
    "spec": {
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["m"]},
            {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["8"]},
        ],
        "provider": {
            "subnetSelector": {"karpenter.sh/discovery": CLUSTER},
            "securityGroupSelector": {"karpenter.sh/discovery": CLUSTER},
        },
        "ttlSecondsUntilExpired": 2_592_000,
        "ttlSecondsAfterEmpty": 30,
    },
}


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"ip-10-{number >> 16}-{number >> 8 & 255}-{number & 255}.ec2.internal"


def instance_id(number: int) -> str:
    """Return the id of a node's machine."""
    return f"i-{0xABC00000 + number:017x}"


def zone_of(number: int) -> str:
    """Return the zone of a node."""
    return ZONES[number % len(ZONES)]


def node(number: int, *, joining: bool = False) -> dict[str, Any]:
    """Return a node of Dovetail.

    Args:
        number: Tells it from the others.
        joining: Whether its kubelet is Ready and it is not open for pods yet.
    """
    name, zone = node_name(number), zone_of(number)
    labels = {
        keys.PROVISIONER_NAME: "default",
        keys.ZONE: zone,
        keys.REGION: "us-east-1",
        keys.CAPACITY_TYPE: "on-demand",
        keys.INSTANCE_TYPE: "m5.2xlarge",
        keys.ARCH: "amd64",
        keys.OS: "linux",
        keys.HOSTNAME: name,
    }
    if not joining:
        labels |= {keys.INITIALIZED: "true", keys.REGISTERED: "true"}
    images = [
        {"names": [f"registry.example.com/team/image-{n}@sha256:{n:064d}"], "sizeBytes": n << 20}
        for n in range(43)
    ]
    closing = [{"key": keys.NOT_READY_TAINT, "effect": "NoSchedule"}]
    return {
        "metadata": {
            "name": name,
            "uid": f"10000000-0000-0000-0000-{number:012d}",
            "creationTimestamp": _BORN,
            "labels": labels,
            "annotations": {keys.SLOT: f"old/0/{number}"},
            "finalizers": [keys.TERMINATION_FINALIZER],
            "managedFields": _managed(8),
        },
        "spec": {
            "providerID": f"aws:///{zone}/{instance_id(number)}",
            **({"taints": closing} if joining else {}),
        },
        "status": {
            "capacity": _AMOUNTS,
            "allocatable": _ROOM,
            "images": images,
            "conditions": _conditions("MemoryPressure", "DiskPressure", "PIDPressure", "Ready"),
            "nodeInfo": {"kubeletVersion": "v1.33.1", "operatingSystem": "linux"},
        },
    }


def pod(number: int, node_number: int | None, *, cpu: str = "700m") -> dict[str, Any]:
    """Return a pod of one of a hundred workloads.

    Args:
        number: Tells it from the others.
        node_number: Of the node it runs on; None for one that waits for capacity.
        cpu: What it asks for.
    """
    workload = f"app-{number % _WORKLOADS:02d}"
    container = {
        "name": "app",
        "image": f"registry.example.com/team/{workload}:1.2.3",
        "env": [{"name": f"VARIABLE_{n}", "value": "x" * 40} for n in range(36)],
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "serviceAccountName": "default",
        "schedulerName": "default-scheduler",
        "priority": 0,
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in (keys.NODE_NOT_READY_TAINT, keys.NODE_UNREACHABLE_TAINT)
        ],
    }
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status: dict[str, Any] = {"phase": "Pending", "conditions": [waits]}
    if node_number is not None:
        spec["nodeName"] = node_name(node_number)
        kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": _conditions(*kinds)}
    return {
        "metadata": {
            "namespace": "default",
            "name": f"{workload}-5d4f7c9b8-{number:06d}",
            "uid": f"20000000-0000-0000-0000-{number:012d}",
            "creationTimestamp": _BORN,
            "labels": {"app": workload, "pod-template-hash": "5d4f7c9b8"},
            "annotations": {f"example.com/note-{n}": "y" * 40 for n in range(4)},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{workload}-5d4f7c9b8",
                    "uid": f"30000000-0000-0000-0000-{number % _WORKLOADS:012d}",
                    "controller": True,
                }
            ],
            "managedFields": _managed(5),
        },
        "spec": spec,
        "status": status,
    }


def _conditions(*kinds: str) -> list[dict[str, str]]:
    fine = {kind: "False" if kind.endswith("Pressure") else "True" for kind in kinds}
    return [
        {"type": kind, "status": status, "reason": "AsItShould", "lastTransitionTime": _BORN}
        for kind, status in fine.items()
    ]


def _managed(parts: int) -> list[dict[str, Any]]:
    """Return managed fields like those that controllers and kubelets leave."""
    fields: dict[str, Any] = {
        f"f:field{n}": {f'k:{{"type":"part{n}"}}': {".": {}, "f:x": {}}} for n in range(parts)
    }
    entry = {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": _BORN}
    return [
        {
            **entry,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": fields},
            "subresource": "status",
        }
        for _ in range(3)
    ]
