"""Label selectors and field selectors."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from infra.local.kube.errors import JsonObject, bad_request
from infra.local.kube.kinds import Resource

Test = Callable[[Mapping[str, str]], bool]

NODE_NAME = "spec.nodeName"
_ANY = ("metadata.name", "metadata.namespace")
_FIELDS: dict[str, dict[str, str]] = {
    "Pod": {
        NODE_NAME: "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    },
    "Node": {"spec.unschedulable": "false"},
    "Namespace": {"status.phase": ""},
    "Secret": {"type": ""},
    "Job": {"status.successful": "0"},
    "ReplicaSet": {"status.replicas": "0"},
    "Event": {
        "involvedObject.kind": "",
        "involvedObject.namespace": "",
        "involvedObject.name": "",
        "involvedObject.uid": "",
        "involvedObject.apiVersion": "",
        "involvedObject.resourceVersion": "",
        "involvedObject.fieldPath": "",
        "reason": "",
        "reportingComponent": "",
        "source": "",
        "type": "",
    },
}
_SET = re.compile(r"^([^\s!=<>()]+)\s+(in|notin)\s+\(([^()]*)\)$")
_PAIR = re.compile(r"^([^\s!=<>()]+)\s*(==|!=|=|<|>)\s*([^\s=!<>()]*)$")


def _field_names(resource: Resource) -> dict[str, str]:
    if resource.custom is not None:
        paths = [
            selectable_field["jsonPath"]
            for selectable_field in resource.custom.get("selectableFields") or ()
        ]
        return {path.lstrip("."): "" for path in paths}
    return _FIELDS.get(resource.kind, {})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def selectable_fields(resource: Resource, obj: JsonObject) -> dict[str, str]:
    """Return what field selectors see of an object."""
    metadata = obj["metadata"]
    found = {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
    for path, fallback in _field_names(resource).items():
        value: Any = obj
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if path == "source" and isinstance(value, dict):
            value = value.get("component")
        found[path] = _text(value) or fallback
    return found


def _split(text: str) -> list[str]:
    """Split at the commas outside parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def _compare(key: str, sign: str, bound: str) -> Test:
    limit = _number(bound)
    if limit is None:
        raise bad_request(f"labelSelector: {bound!r} is not an integer; {key}{sign} needs one")

    def test(labels: Mapping[str, str]) -> bool:
        value = _number(labels.get(key))
        if value is None:
            return False
        return value > limit if sign == ">" else value < limit

    return test


def _label_test(part: str) -> Test:
    if match := _SET.match(part):
        key, word, listed = match.groups()
        values = frozenset(value.strip() for value in listed.split(","))
        if word == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _PAIR.match(part):
        key, sign, value = match.groups()
        if sign in "<>":
            return _compare(key, sign, value)
        if sign == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if re.fullmatch(r"!\s*[^\s!=<>()]+", part):
        return lambda labels: part[1:].strip() not in labels
    if re.fullmatch(r"[^\s!=<>()]+", part):
        return lambda labels: part in labels
    raise bad_request(f"unable to parse requirement: labelSelector {part!r}")


def label_selector(text: str) -> Test | None:
    """Compile a label selector; None when it selects everything."""
    tests = [_label_test(part) for part in _split(text)]
    if not tests:
        return None
    return lambda labels: all(test(labels) for test in tests)


def field_selector(resource: Resource, text: str) -> Test | None:
    """Compile a field selector; None when it selects everything."""
    known = (*_ANY, *_field_names(resource))
    wanted: list[tuple[str, bool, str]] = []
    for part in _split(text):
        match = _PAIR.match(part)
        if match is None or match[2] in "<>":
            raise bad_request(f"invalid field selector: {part!r} is not name=value or name!=value")
        path, sign, value = match.groups()
        if path not in known:
            raise bad_request(f'field label not supported: "{path}" for {resource.kind}')
        wanted.append((path, sign != "!=", value))
    if not wanted:
        return None
    return lambda fields: all((fields[path] == value) is equal for path, equal, value in wanted)


def node_asked_for(text: str) -> str:
    """Return the node that a field selector requires of pods, "" if it requires none."""
    for part in _split(text):
        match = _PAIR.match(part)
        if match is not None and match[1] == NODE_NAME and match[2] != "!=":
            return match[3]
    return ""


def selector_text(selector: JsonObject | None) -> str:
    """Write a LabelSelector object the way `labelSelector=` reads it."""
    selector = selector or {}
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for match_expression in selector.get("matchExpressions") or ():
        values = ",".join(match_expression.get("values") or ())
        match match_expression["operator"]:
            case "In":
                parts.append(f"{match_expression['key']} in ({values})")
            case "NotIn":
                parts.append(f"{match_expression['key']} notin ({values})")
            case "Exists":
                parts.append(match_expression["key"])
            case _:
                parts.append(f"!{match_expression['key']}")
    return ",".join(parts)
