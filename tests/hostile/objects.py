"""One right document of each kind that is read from a cluster, with every field that is read."""

from typing import Any, Final

from shared.model import labels as keys

NAMESPACE: Final = "shop"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_ZONE: Final = {"key": keys.ZONE, "operator": "In", "values": ["us-east-1a", "us-east-1b"]}
_TEAM: Final = {"key": "team", "operator": "In", "values": ["red"]}
_APP: Final = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}],
}
_TERM: Final = {
    "topologyKey": keys.HOSTNAME,
    "labelSelector": _APP,
    "namespaces": [NAMESPACE],
    "matchLabelKeys": ["app"],
}
_CONTAINER: Final = {
    "name": "main",
    "image": "pause",
    "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "0.0.0.0"}],
}
_SPEC: Final = {
    "containers": [_CONTAINER],
    "initContainers": [{**_CONTAINER, "name": "side", "restartPolicy": "Always", "ports": []}],
    "overhead": {"cpu": "10m"},
    "nodeSelector": {keys.ARCH: "amd64"},
    "priority": 0,
    "terminationGracePeriodSeconds": 30,
    "tolerations": [
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"},
        {"key": "c", "operator": "Exists", "tolerationSeconds": 30},
    ],
    "affinity": {
        "nodeAffinity": {
            _REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [_ZONE, _TEAM]}]},
            _PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [_ZONE]}}],
        },
        "podAffinity": {_PREFERRED: [{"weight": 5, "podAffinityTerm": _TERM}]},
        "podAntiAffinity": {_REQUIRED: [_TERM]},
    },
    "topologySpreadConstraints": [
        {
            "topologyKey": keys.ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": _APP,
            "minDomains": 2,
            "matchLabelKeys": ["app"],
        }
    ],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {
            "name": "tmp",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3"}
                }
            },
        },
    ],
}


def _metadata(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "web", "team": "red"},
        "annotations": {"example.com/note": "x"},
        **more,
    }


def _owned(name: str) -> dict[str, Any]:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    return _metadata(name, namespace=NAMESPACE, ownerReferences=[{**owner, "apiVersion": "v1"}])


def plain_pod(name: str, **spec: Any) -> dict[str, Any]:
    """Return a pod that waits and asks for little, in a namespace of its own."""
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "calm", "uid": f"uid-{name}"},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}],
            **spec,
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def _pods() -> list[dict[str, Any]]:
    waiting = {
        **plain_pod("waiting"),
        "metadata": _owned("waiting"),
        "spec": _SPEC,
    }
    running = {
        "kind": "Pod",
        "metadata": _owned("running"),
        "spec": {**_SPEC, "nodeName": "n1"},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "200m"}}],
        },
    }
    return [waiting, running]


def crowd(name: str, terms: int) -> dict[str, Any]:
    """Return a pod on a node with so many terms of anti-affinity over labels that none has."""
    apart = [{**_TERM, "topologyKey": f"example.com/{name}-{n}"} for n in range(terms)]
    spec = {
        "containers": [{"name": "c"}],
        "nodeName": "n1",
        "affinity": {"podAntiAffinity": {_REQUIRED: apart}},
    }
    return {"kind": "Pod", "metadata": _owned(name), "spec": spec, "status": {"phase": "Running"}}


def node_document(name: str = "n1", cpu: str = "2") -> dict[str, Any]:
    """Return a Ready Dovetail node."""
    return {
        "kind": "Node",
        "metadata": {
            **_metadata(name, finalizers=[keys.TERMINATION_FINALIZER]),
            "labels": {
                keys.PROVISIONER_NAME: "default",
                keys.ZONE: "us-east-1a",
                keys.INSTANCE_TYPE: "m5.large",
                keys.CAPACITY_TYPE: "spot",
                keys.ARCH: "amd64",
                keys.OS: "linux",
                keys.HOSTNAME: name,
                "karpenter.sh/initialized": "true",
            },
            "annotations": {
                keys.EMPTINESS_TIMESTAMP: "2026-01-01T00:00:00+00:00",
                keys.SLOT: f"{name}/0/0",
            },
        },
        "spec": {
            "providerID": f"aws:///us-east-1a/i-{name}",
            "unschedulable": False,
            "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": {"cpu": cpu, "memory": "8Gi", "pods": "29"},
            "allocatable": {"cpu": cpu, "memory": "7Gi", "pods": "29"},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        },
    }


def _storage() -> dict[str, list[dict[str, Any]]]:
    term = {"matchExpressions": [_ZONE]}
    return {
        "PersistentVolumeClaim": [
            {
                "metadata": _owned("data"),
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "volumeName": "pv-1",
                    "storageClassName": "gp3",
                },
                "status": {"phase": "Bound"},
            }
        ],
        "PersistentVolume": [
            {
                "metadata": {**_metadata("pv-1"), "labels": {keys.ZONE: "us-east-1a"}},
                "spec": {
                    "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                    "storageClassName": "gp3",
                    "claimRef": {"namespace": NAMESPACE, "name": "data"},
                },
                "status": {"phase": "Bound"},
            }
        ],
        "StorageClass": [
            {
                "metadata": _metadata("gp3"),
                "provisioner": "ebs.csi.aws.com",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": [
                    {"matchLabelExpressions": [{"key": keys.ZONE, "values": ["us-east-1a"]}]}
                ],
            }
        ],
        "CSINode": [
            {
                "metadata": _metadata("n1"),
                "spec": {"drivers": [{"name": "ebs.csi.aws.com", "allocatable": {"count": 25}}]},
            }
        ],
        "VolumeAttachment": [
            {
                "metadata": _metadata("va-1"),
                "spec": {
                    "attacher": "ebs.csi.aws.com",
                    "nodeName": "n1",
                    "source": {"persistentVolumeName": "pv-1"},
                },
                "status": {"attached": True},
            }
        ],
    }


DOCUMENTS: Final[dict[str, list[dict[str, Any]]]] = {
    "Pod": _pods(),
    "Node": [node_document()],
    **_storage(),
    "Namespace": [{"metadata": _metadata(NAMESPACE)}],
    "DaemonSet": [
        {
            "metadata": _owned("agent"),
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {
                    "metadata": {"labels": {"app": "agent"}},
                    "spec": {
                        "containers": [{**_CONTAINER, "ports": []}],
                        "nodeSelector": {keys.OS: "linux"},
                        "runtimeClassName": "gvisor",
                        "tolerations": [{"operator": "Exists"}],
                    },
                },
            },
        },
        {
            "metadata": {**_metadata("huge"), "namespace": NAMESPACE},
            "spec": {
                "selector": {"matchLabels": {"app": "huge"}},
                "template": {
                    "metadata": {"labels": {"app": "huge"}},
                    "spec": {
                        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1000"}}}],
                        "affinity": {"podAntiAffinity": {_REQUIRED: [_TERM]}},
                    },
                },
            },
        },
    ],
    "RuntimeClass": [
        {
            "metadata": _metadata("gvisor"),
            "handler": "runsc",
            "overhead": {"podFixed": {"cpu": "10m"}},
            "scheduling": {"nodeSelector": {keys.OS: "linux"}, "tolerations": [{"key": "a"}]},
        }
    ],
    "PodDisruptionBudget": [
        {
            "metadata": {**_metadata("web"), "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": _APP, "unhealthyPodEvictionPolicy": "x"},
            "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1},
        }
    ],
    "Lease": [
        {
            "metadata": {"namespace": "kube-system", "name": "karpenter-leader-election"},
            "spec": {"holderIdentity": "karpenter-1", "renewTime": "2026-01-01T00:00:00.000000Z"},
        }
    ],
    "Provisioner": [
        {
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": _metadata("default"),
            "spec": {
                "requirements": [
                    _ZONE,
                    {"key": keys.INSTANCE_FAMILY, "operator": "In", "values": ["m5"]},
                    {"key": "team", "operator": "Exists"},
                    {"key": keys.CAPACITY_TYPE, "operator": "In", "values": ["spot"]},
                ],
                "labels": {"example.com/x": "y"},
                "providerRef": {"name": "linux"},
                "ttlSecondsAfterEmpty": 30,
            },
        }
    ],
    "AWSNodeTemplate": [
        {
            "metadata": _metadata("linux"),
            "spec": {
                "amiFamily": "AL2023",
                "subnetSelector": {"aws-ids": "subnet-1"},
                "securityGroupSelector": {"kubernetes.io/cluster/a": "owned"},
                "tags": {"cost-centre": "7"},
            },
        }
    ],
}
