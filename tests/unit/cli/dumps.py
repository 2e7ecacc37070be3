"""Dumps of running clusters, as `kubectl get … -o json` prints them: Karpenter, node groups, mixed.

python -m tests.unit.cli.dumps mixed > dump.json
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.instance_types.catalog import embedded_catalog

CATALOG = embedded_catalog()
REGION = "us-east-1"
MADE = "2026-10-01T08:00:00Z"
DAEMONS = (("aws-node", "50m", "64Mi"), ("kube-proxy", "100m", "64Mi"))
Object = dict[str, Any]


def node(name: str, of_type: str, zone: str, labels: Mapping[str, str], **spec: Any) -> Object:
    """Return a Ready node with what its type has for pods."""
    found = CATALOG.get(of_type)
    amounts = (
        found.allocatable.to_quantities()
        if found is not None
        else {"cpu": "3920m", "memory": "14Gi", "pods": "58", "ephemeral-storage": "18Gi"}
    )
    arch = "amd64" if found is None else found.labels["kubernetes.io/arch"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "creationTimestamp": MADE,
            "labels": {
                "node.kubernetes.io/instance-type": of_type,
                "topology.kubernetes.io/zone": f"{REGION}{zone}",
                "topology.kubernetes.io/region": REGION,
                "kubernetes.io/arch": arch,
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                **labels,
            },
        },
        "spec": {"providerID": f"aws:///{REGION}{zone}/i-{name.replace('-', '')}", **spec},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": MADE}
            ],
        },
    }  # fmt: skip


def pod(
    namespace: str, owner: str, number: int, where: str, cpu: str, memory: str,
    *, kind: str = "ReplicaSet", **spec: Any,
) -> Object:  # fmt: skip
    """Return a running pod of a workload."""
    name = f"{owner}-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"pod-{namespace}-{name}",
            "creationTimestamp": MADE,
            "labels": {"app": owner},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"of-{owner}",
                 "controller": True}
            ],
        },
        "spec": {
            "nodeName": where,
            "containers": [
                {"name": "main", "image": "app:1",
                 "resources": {"requests": {"cpu": cpu, "memory": memory}}}
            ],
            **spec,
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
        },
    }  # fmt: skip


def daemon_sets() -> list[Object]:
    """Return the DaemonSets of every EKS cluster."""
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"namespace": "kube-system", "name": name},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "tolerations": [{"operator": "Exists"}],
                        "containers": [
                            {"name": "main",
                             "resources": {"requests": {"cpu": cpu, "memory": memory}}}
                        ],
                    },
                },
            },
        }
        for name, cpu, memory in DAEMONS
    ]  # fmt: skip


def workload(
    namespace: str, name: str, count: int, nodes: Sequence[Object], cpu: str, memory: str,
    **spec: Any,
) -> list[Object]:  # fmt: skip
    """Return the pods of a workload, one node after the other."""
    names = [found["metadata"]["name"] for found in nodes]
    return [
        pod(namespace, name, number, names[number % len(names)], cpu, memory, **spec)
        for number in range(count)
    ]


def with_daemons(nodes: Sequence[Object]) -> list[Object]:
    """Return the nodes and a pod of each DaemonSet on each."""
    pods = [
        pod("kube-system", name, number, found["metadata"]["name"], cpu, memory, kind="DaemonSet")
        for name, cpu, memory in DAEMONS
        for number, found in enumerate(nodes)
    ]
    return [*nodes, *pods]


def spread(app: str, key: str = "topology.kubernetes.io/zone") -> Object:
    """Return a spec with an even spread of an app."""
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": app}}}
        ]
    }  # fmt: skip


def budget(namespace: str, app: str, allowed: int) -> Object:
    """Return a PodDisruptionBudget as its controller has counted it."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": namespace, "name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, "maxUnavailable": 1},
        "status": {"disruptionsAllowed": allowed},
    }


def node_pool(name: str, *requirements: Object) -> Object:
    """Return a NodePool of Karpenter's v1."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"
                    },
                    "requirements": list(requirements),
                }
            }
        },
    }  # fmt: skip


def needs(key: str, *values: str) -> Object:
    """Return a requirement."""
    return {"key": key, "operator": "In", "values": list(values)}


NODE_CLASS: Object = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": "KarpenterNodeRole-prod",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
    },
}


def _of_pool(name: str, how: str) -> Mapping[str, str]:
    return {"karpenter.sh/nodepool": name, "karpenter.sh/capacity-type": how}


def karpenter() -> list[Object]:
    """Return a cluster of Karpenter: a general NodePool whose nodes were filled better once."""
    general = [
        node(f"ip-10-0-0-{number}", of_type, zone, _of_pool("general", "on-demand"))
        for number, (of_type, zone) in enumerate(
            zip(("m5.2xlarge", "c6i.2xlarge", "m6i.2xlarge", "r5.xlarge") * 3, "abc" * 4,
                strict=True)
        )
    ]  # fmt: skip
    spot = [
        node(f"ip-10-0-1-{number}", "c5.2xlarge", zone, _of_pool("batch", "spot"))
        for number, zone in enumerate("abca")
    ]
    return [
        node_pool(
            "general",
            needs("karpenter.k8s.aws/instance-category", "c", "m", "r"),
            needs("karpenter.sh/capacity-type", "on-demand"),
        ),
        node_pool("batch", needs("karpenter.sh/capacity-type", "spot", "on-demand")),
        NODE_CLASS,
        *daemon_sets(),
        *with_daemons([*general, *spot]),
        *workload("shop", "web", 24, general, "500m", "768Mi", **spread("web")),
        *workload("shop", "cart", 9, general[:9], "1", "2Gi"),
        *workload("search", "index", 6, general[3:9], "1500m", "6Gi", **spread("index")),
        *workload("payments", "ledger", 3, general[9:12], "900m", "3Gi"),
        *workload("kube-system", "coredns", 2, general[:2], "100m", "70Mi"),
        *workload("reports", "nightly", 10, spot, "1", "1Gi", kind="Job"),
        budget("payments", "ledger", 0),
        budget("shop", "web", 1),
    ]


def node_groups() -> list[Object]:
    """Return a cluster of managed node groups and one of eksctl, kept by Cluster Autoscaler."""
    general = [
        node(
            f"ip-10-1-0-{number}", "m5.xlarge", zone,
            {"eks.amazonaws.com/nodegroup": "general",
             "eks.amazonaws.com/capacityType": "ON_DEMAND",
             "alpha.eksctl.io/nodegroup-name": "general", "alpha.eksctl.io/cluster-name": "stage"},
        )
        for number, zone in enumerate("abc" * 5)
    ]  # fmt: skip
    memory = [
        node(
            f"ip-10-1-1-{number}", "r5.2xlarge", zone,
            {"eks.amazonaws.com/nodegroup": "memory", "eks.amazonaws.com/capacityType": "ON_DEMAND",
             "role": "memory"},
            taints=[{"key": "role", "value": "memory", "effect": "NoSchedule"}],
        )
        for number, zone in enumerate("abc")
    ]  # fmt: skip
    batch = [
        node(
            f"ip-10-1-2-{number}", "c5.4xlarge", zone,
            {"alpha.eksctl.io/nodegroup-name": "batch", "node-lifecycle": "spot",
             "alpha.eksctl.io/instance-id": f"i-0{number}", "role": "batch"},
        )
        for number, zone in enumerate("ab")
    ]  # fmt: skip
    tolerates = [{"key": "role", "operator": "Equal", "value": "memory", "effect": "NoSchedule"}]
    return [
        *daemon_sets(),
        *with_daemons([*general, *memory, *batch]),
        *workload("shop", "web", 20, general, "600m", "1Gi", **spread("web")),
        *workload("shop", "api", 12, general, "750m", "1536Mi"),
        *workload("tools", "grafana", 1, general[4:5], "250m", "512Mi"),
        *workload("kube-system", "cluster-autoscaler", 1, general[:1], "100m", "600Mi"),
        *workload("kube-system", "coredns", 2, general[1:3], "100m", "70Mi"),
        *workload(
            "search", "cache", 4, memory, "1", "20Gi",
            tolerations=tolerates, nodeSelector={"role": "memory"},
        ),
        *workload("reports", "crunch", 6, batch, "2", "3Gi", nodeSelector={"role": "batch"}),
        budget("shop", "web", 2),
    ]  # fmt: skip


def mixed() -> list[Object]:
    """Return a cluster amid a migration: five kinds of pools, Fargate, and a type without price."""
    group = [
        node(f"ip-10-2-0-{number}", "m5.2xlarge", zone,
             {"eks.amazonaws.com/nodegroup": "system", "eks.amazonaws.com/capacityType": "SPOT"})
        for number, zone in enumerate("abc")
    ]  # fmt: skip
    old = [
        node(f"ip-10-2-1-{number}", "c5.xlarge", zone,
             {"karpenter.sh/provisioner-name": "old", "karpenter.sh/capacity-type": "spot"})
        for number, zone in enumerate("abc")
    ]  # fmt: skip
    new = [
        node(f"ip-10-2-2-{number}", "m6i.xlarge", zone, _of_pool("new", "on-demand"))
        for number, zone in enumerate("abc")
    ]
    auto = [
        node(f"i-0auto{number}", "c6a.large", "c",
             {"karpenter.sh/nodepool": "general-purpose", "karpenter.sh/capacity-type": "on-demand",
              "eks.amazonaws.com/compute-type": "auto"})
        for number in range(2)
    ]  # fmt: skip
    by_hand = [node("ip-10-2-3-0", "m5.large", "a", {})]
    outpost = [node("ip-10-2-4-0", "m0.xlarge", "a", {"eks.amazonaws.com/nodegroup": "outpost"})]
    fargate = [
        node(
            f"fargate-ip-10-2-9-{number}",
            "fargate",
            "b",
            {"eks.amazonaws.com/compute-type": "fargate"},
        )
        for number in range(2)
    ]
    instances = [*group, *old, *new, *auto, *by_hand, *outpost]
    pinned = {"nodeSelector": {"kubernetes.io/hostname": "ip-10-2-0-0"}}
    waiting = pod("shop", "web", 99, "", "500m", "1Gi")
    waiting["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    return [
        node_pool("new", needs("karpenter.k8s.aws/instance-family", "m6i", "m6a"),
                  needs("karpenter.sh/capacity-type", "on-demand")),
        {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "old"},
         "spec": {"limits": {"resources": {"cpu": "100"}},
                  "requirements": [needs("node.kubernetes.io/instance-type", "c5.xlarge"),
                                   needs("karpenter.sh/capacity-type", "spot")],
                  "providerRef": {"name": "gone"}, "provider": {"instanceProfile": "x"}}},
        NODE_CLASS,
        *with_daemons(instances),
        *fargate,
        *workload("shop", "web", 12, [*group, *old], "700m", "1Gi", **spread("web")),
        *workload("shop", "api", 6, new, "500m", "1Gi"),
        *workload("tools", "runner", 3, [*auto, *by_hand], "250m", "512Mi"),
        *workload("tools", "license-server", 1, group[:1], "500m", "1Gi", **pinned),
        *workload("edge", "relay", 1, outpost, "1", "1Gi"),
        *workload("jobs", "import", 2, fargate, "250m", "512Mi"),
        waiting,
    ]  # fmt: skip


DUMPS: Mapping[str, Callable[[], list[Object]]] = {
    "karpenter": karpenter,
    "node-groups": node_groups,
    "mixed": mixed,
}


def as_list(objects: Sequence[Object]) -> str:
    """Return the objects as kubectl prints them."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}, indent=1)


if __name__ == "__main__":
    sys.stdout.write(as_list(DUMPS[sys.argv[1]]()))
