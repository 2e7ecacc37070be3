"""The pods a DaemonSet controller makes (a second opinion: raw documents only)."""

import copy
from typing import Final

from infra.local.cluster_simulator.rules.matching import (
    HARD_EFFECTS,
    matches_node_affinity,
    taints_of,
    untolerated,
)
from tests.scheduler_oracle.clusters.seeded_random import Json

# Source: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/ (2026-08).
_ADDED: Final = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
]
# The controller ignores these taints' absence of a match: the node starts without the pod.
_PASSING: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def daemon_pod(daemonset: Json, node: Json) -> Json | None:
    """Return the pod that runs on a node, None when the DaemonSet leaves the node out."""
    template = daemonset["spec"]["template"]
    spec = copy.deepcopy(template["spec"])
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *_ADDED]
    name = f"{daemonset['metadata']['name']}-{node['metadata']['name']}"
    made: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "namespace": daemonset["metadata"]["namespace"],
            "labels": dict(template["metadata"]["labels"]),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": daemonset["metadata"]["name"],
                    "uid": daemonset["metadata"]["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": spec,
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    lasting = [taint for taint in taints_of(node) if taint["key"] not in _PASSING]
    if untolerated(lasting, made, HARD_EFFECTS) or not matches_node_affinity(made, node):
        return None
    spec["nodeName"] = node["metadata"]["name"]
    return made
