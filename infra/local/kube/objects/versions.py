"""HorizontalPodAutoscalers in autoscaling/v1, the version that `kubectl autoscale` wrote for long.

They are stored in the form of autoscaling/v2. Annotations hold what has no field in v1.
Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/autoscaling/v1/conversion.go
and ../annotations.go, read 2026-11-26.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Resource
from infra.local.kube.store import Entry

_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/"
_PERCENT: Final = "targetCPUUtilizationPercentage"
_CURRENT_PERCENT: Final = "currentCPUUtilizationPercentage"
# Field of a metric in v1, and its place in v2; a status says `current` for `target`.
_METRIC: Final[Mapping[str, Mapping[str, str]]] = {
    "resource": {
        "name": "name",
        "targetAverageUtilization": "target.averageUtilization",
        "targetAverageValue": "target.averageValue",
    },
    "containerResource": {
        "name": "name",
        "container": "container",
        "targetAverageUtilization": "target.averageUtilization",
        "targetAverageValue": "target.averageValue",
    },
    "pods": {
        "metricName": "metric.name",
        "selector": "metric.selector",
        "targetAverageValue": "target.averageValue",
    },
    "object": {
        "target": "describedObject",
        "metricName": "metric.name",
        "selector": "metric.selector",
        "targetValue": "target.value",
        "averageValue": "target.averageValue",
    },
    "external": {
        "metricName": "metric.name",
        "metricSelector": "metric.selector",
        "targetValue": "target.value",
        "targetAverageValue": "target.averageValue",
    },
}


def load(resource: Resource, entry: Entry) -> JsonObject:
    """Return a stored object in a resource's own version."""
    obj = entry.load()
    return _to_v1(obj) if resource.is_converted else obj


def raw(resource: Resource, entry: Entry) -> bytes:
    """Return a stored object in a resource's own version, as JSON."""
    return orjson.dumps(load(resource, entry)) if resource.is_converted else entry.raw


def store(resource: Resource, obj: JsonObject) -> None:
    """Turn an object of a resource's own version, in place, into the form that is stored."""
    if resource.is_converted:
        _to_v2(obj)


def _to_v1(obj: JsonObject) -> JsonObject:
    kept = _take_annotations(obj)
    spec, status = obj["spec"], obj.get("status") or {}
    metrics, current = spec.pop("metrics", ()), status.pop("currentMetrics", ())
    own = [metric for metric in metrics if _cpu_percent(metric, "target") is not None]
    if own:
        spec[_PERCENT] = _cpu_percent(own[0], "target")
    for metric in current:
        if (percent := _cpu_percent(metric, "current")) is not None:
            status[_CURRENT_PERCENT] = percent
    told: dict[str, Any] = {
        "metrics": [_metric_to_v1(metric, "target") for metric in metrics if metric not in own],
        "current-metrics": [_metric_to_v1(metric, "current") for metric in current],
        "conditions": status.pop("conditions", ()),
        # The names that the fields have in Go: a real server writes its internal type.
        "behavior": _renamed(spec.pop("behavior", None), str.upper),
    }
    kept |= {f"{_ANNOTATION}{key}": orjson.dumps(it).decode() for key, it in told.items() if it}
    if kept:
        obj["metadata"]["annotations"] = kept
    return obj


def _to_v2(obj: JsonObject) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    told = {key: _told(annotations, key) for key in ("metrics", "current-metrics", "conditions")}
    behavior = _renamed(_told(annotations, "behavior"), str.lower)
    if kept := _take_annotations(obj):
        obj["metadata"]["annotations"] = kept
    spec, status = obj.setdefault("spec", {}), obj.get("status") or {}
    metrics = [_metric_to_v2(metric, "target") for metric in told["metrics"]]
    if (percent := spec.pop(_PERCENT, None)) is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if behavior:
        spec["behavior"] = behavior
    percent = status.pop(_CURRENT_PERCENT, None)
    if told["current-metrics"]:
        status["currentMetrics"] = [
            _metric_to_v2(metric, "current") for metric in told["current-metrics"]
        ]
    elif percent is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": percent}}
        status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    if told["conditions"]:
        status["conditions"] = told["conditions"]
    if status:
        obj["status"] = status


def _take_annotations(obj: JsonObject) -> JsonObject:
    """Take the annotations away; return those that users wrote."""
    found = obj["metadata"].pop("annotations", None) or {}
    return {key: text for key, text in found.items() if not key.startswith(_ANNOTATION)}


def _told(annotations: JsonObject, key: str) -> Any:
    try:
        told = orjson.loads(annotations.get(f"{_ANNOTATION}{key}", "[]"))
    except orjson.JSONDecodeError:  # A real server, too, goes past what it cannot read.
        return []
    return [item for item in told if isinstance(item, dict)] if isinstance(told, list) else told


def _cpu_percent(metric: JsonObject, side: str) -> int | None:
    resource = metric.get("resource") or {}
    if metric["type"] != "Resource" or resource.get("name") != "cpu":
        return None
    percent: int | None = resource[side].get("averageUtilization")
    return percent


def _renamed(value: Any, case: Callable[[str], str]) -> Any:
    """Return a value whose fields begin with a letter of this case."""
    if isinstance(value, dict):
        return {case(key[0]) + key[1:]: _renamed(item, case) for key, item in value.items()}
    return [_renamed(item, case) for item in value] if isinstance(value, list) else value


def _fields_of(metric: JsonObject, side: str) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return the part of a metric that says what is measured, and its (v1, v2) fields."""
    name = str(metric.get("type", ""))
    part = name[:1].lower() + name[1:]
    pairs = []
    for old, new in _METRIC.get(part, {}).items():
        head, *rest = new.split(".")
        first = side if head == "target" else head
        pairs.append((old.replace("target", side) if head == "target" else old, [first, *rest]))
    return part, pairs


def _metric_to_v1(metric: JsonObject, side: str) -> JsonObject:
    part, pairs = _fields_of(metric, side)
    found = {}
    for old, new in pairs:
        value = metric.get(part)
        for key in new:
            value = (value or {}).get(key)
        if value is not None:
            found[old] = value
    return {"type": metric["type"], part: found}


def _metric_to_v2(metric: JsonObject, side: str) -> JsonObject:
    part, pairs = _fields_of(metric, side)
    found: JsonObject = {}
    for old, (*parents, last) in pairs:
        if old in (metric.get(part) or {}):
            place = found
            for key in parents:
                place = place.setdefault(key, {})
            place[last] = metric[part][old]
    if side == "target":
        target = found.setdefault("target", {})
        kinds = {"averageUtilization": "Utilization", "averageValue": "AverageValue"}
        target["type"] = next((kinds[key] for key in kinds if key in target), "Value")
    return {"type": metric.get("type"), part: found}
