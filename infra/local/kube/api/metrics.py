"""The metrics API, for `kubectl top`: simulated pods use what they request.

A pod with the annotation `sim.dovetail.dev/usage-percent` uses that much of it.

Source: https://kubernetes.io/docs/tasks/debug/debug-cluster/resource-metrics-pipeline/, read
2026-11-24.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from infra.local.cluster_simulator.rules.amounts import amounts, pod_requests
from infra.local.kube.calls import timestamp
from infra.local.kube.errors import JsonObject, no_such_path, not_found
from infra.local.kube.kinds import Kinds
from infra.local.kube.selectors import label_selector
from infra.local.kube.store import Store

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
_USAGE: Final = "sim.dovetail.dev/usage-percent"
ROOT: Final = f"/apis/{GROUP}/{VERSION}"
_KINDS: Final = {"nodes": "NodeMetrics", "pods": "PodMetrics"}


def resources() -> JsonObject:
    listed = [
        {"name": plural, "singularName": "", "namespaced": plural == "pods", "kind": kind,
         "verbs": ["get", "list"]}
        for plural, kind in _KINDS.items()
    ]  # fmt: skip
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
    return {**head, "resources": listed}


def answer(
    kinds: Kinds, store: Store, path: str, query: Mapping[str, str], now: datetime
) -> JsonObject:
    """Return the metrics of one or all nodes or running pods."""
    parts = [part for part in path.removeprefix(ROOT).split("/") if part]
    namespace = parts[1] if parts[:1] == ["namespaces"] and len(parts) > 2 else ""
    plural, name, *rest = [*(parts[2:] if namespace else parts), "", ""]
    if plural not in _KINDS or any(rest) or (namespace and plural == "nodes"):
        raise no_such_path()
    labels = label_selector(query.get("labelSelector", ""))
    chosen = [
        entry.load()
        for entry in store.select(kinds.core(plural), namespace, lambda _: True)
        if (labels is None or labels(entry.labels)) and name in {"", entry.key[1]}
    ]
    if plural == "pods":
        found = [_head(pod, now) | _of_pod(pod) for pod in chosen if _runs(pod)]
    else:
        used = _used(kinds, store)
        found = [_head(node, now) | _of_node(node, used) for node in chosen]
    version = {"apiVersion": f"{GROUP}/{VERSION}"}
    if not name:
        return {"kind": f"{_KINDS[plural]}List", **version, "metadata": {}, "items": found}
    if not found:
        raise not_found(GROUP, plural, name)
    return {"kind": _KINDS[plural], **version, **found[0]}


def _head(obj: JsonObject, now: datetime) -> JsonObject:
    kept = {key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]}
    return {"metadata": kept, "timestamp": timestamp(now), "window": "30s"}


def _of_pod(pod: JsonObject) -> JsonObject:
    containers = [
        (container["name"], _share(pod, amounts(container.get("resources", {}).get("requests"))))
        for container in pod["spec"]["containers"]
    ]
    return {"containers": [{"name": name, "usage": _usage(used)} for name, used in containers]}


def _of_node(node: JsonObject, used: Mapping[str, Mapping[str, int]]) -> JsonObject:
    return {"usage": _usage(used.get(node["metadata"]["name"], {}))}


def _used(kinds: Kinds, store: Store) -> dict[str, Counter[str]]:
    """Return what running pods use, by node."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for entry in store.select(kinds.core("pods"), "", lambda _: True):
        pod = entry.load()
        if _runs(pod):
            found[pod["spec"].get("nodeName", "")].update(_share(pod, pod_requests(pod)))
    return found


def _share(pod: JsonObject, requests: Mapping[str, int]) -> dict[str, int]:
    """Return what a pod uses of its requests: all, or as its annotation says."""
    written = str((pod["metadata"].get("annotations") or {}).get(_USAGE, ""))
    percent = int(written) if written.isascii() and written.isdecimal() else 100
    return {name: amount * percent // 100 for name, amount in requests.items()}


def _runs(pod: JsonObject) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Running")


def _usage(used: Mapping[str, int]) -> dict[str, str]:
    return {"cpu": f"{used.get('cpu', 0)}m", "memory": f"{used.get('memory', 0) // 1024}Ki"}
