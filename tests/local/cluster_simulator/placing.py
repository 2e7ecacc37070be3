"""Builders of bare nodes and pods for tests of the placement rules."""

from typing import Any

from infra.local.cluster_simulator.rules.matching import ClusterView
from infra.local.cluster_simulator.rules.predicates import fits

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def make_node(name: str = "n0", zone: str | None = "a", **spec: Any) -> Json:
    labels = {"kubernetes.io/hostname": name} | ({ZONE: zone} if zone else {})
    room = {"cpu": "2", "memory": "4Gi", "pods": "3"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": room},
    }


def make_pod(name: str = "p", on: str | None = None, *, cpu: str = "100m", **spec: Any) -> Json:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    place = {"nodeName": on} if on else {}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [container], **place, **spec},
    }


def check(pod: Json, node: Json, view: ClusterView | None = None) -> list[str]:
    view = view or ClusterView(nodes=[node])
    here = [p for p in view.pods if p["spec"].get("nodeName") == node["metadata"]["name"]]
    return fits(pod, node, here, view)


def required(kind: str, term: Any) -> Json:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": term}}
