"""Kubernetes objects of a world, as its API server would show them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.resources import Resources

Raw = Mapping[str, Any]


def node_manifest(node: Node) -> Raw:
    """Return a Node."""
    conditions = []
    if node.ready is not None:
        status = "True" if node.ready else "False"
        conditions.append(_condition("Ready", status, node.ready_changed_at))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "uid": node.uid,
            "labels": dict(node.labels),
            "annotations": dict(node.annotations),
            "finalizers": list(node.finalizers),
            **_times(node.created_at, node.deletion_at),
        },
        "spec": {
            "providerID": node.provider_id,
            "unschedulable": node.unschedulable,
            "taints": [
                {"key": taint.key, "value": taint.value, "effect": taint.effect.value}
                for taint in node.taints
            ],
        },
        "status": {
            "capacity": quantities(node.capacity),
            "allocatable": quantities(node.allocatable),
            "conditions": conditions,
        },
    }


def pod_manifest(pod: Pod, raw: Raw) -> Raw:
    """Return a pod as it is now.

    Args:
        raw: As it was made.
    """
    conditions = []
    if pod.node_name:
        conditions.append(_condition("PodScheduled", "True", None))
        conditions.append(_condition("Ready", "True" if pod.ready else "False", None))
    elif pod.unschedulable:
        unschedulable = _condition("PodScheduled", "False", None)
        conditions.append({**unschedulable, "reason": "Unschedulable"})
    return {
        **raw,
        "metadata": {**raw["metadata"], **_times(pod.created_at, pod.deletion_at)},
        "spec": {**raw["spec"], **({"nodeName": pod.node_name} if pod.node_name else {})},
        "status": {"phase": pod.phase, "conditions": conditions},
    }


def quantities(resources: Resources) -> Mapping[str, str]:
    """Return a resource list of a manifest."""
    return {
        name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in resources.items
    }


def _times(created: datetime | None, deleted: datetime | None) -> Raw:
    given = (("creationTimestamp", created), ("deletionTimestamp", deleted))
    return {name: _stamp(time) for name, time in given if time is not None}


def _condition(kind: str, status: str, changed: datetime | None) -> Raw:
    since = {"lastTransitionTime": _stamp(changed)} if changed is not None else {}
    return {"type": kind, "status": status, **since}


def _stamp(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def open_nodes(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that kube-scheduler looks at."""
    return [node for node in nodes if node.ready is True and node.deletion_at is None]
