"""Rules an object must keep: names, labels, taints, and what may never change again."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from infra.local.kube.errors import Cause, JsonObject
from infra.local.kube.kinds import Resource

_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_NAME_PART = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
_LABEL_NAMED = {"Namespace", "Service"}
_FREELY_NAMED = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_IMMUTABLE: dict[str, tuple[str, ...]] = {
    "Deployment": ("spec.selector",),
    "ReplicaSet": ("spec.selector",),
    "DaemonSet": ("spec.selector",),
    "StatefulSet": ("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
    "Job": ("spec.selector", "spec.completionMode", "spec.template"),
    "StorageClass": ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    "PriorityClass": ("value", "preemptionPolicy"),
    "Secret": ("type",),
    "PersistentVolumeClaim": ("spec.storageClassName", "spec.accessModes", "spec.selector"),
    "CSINode": (),
    "CustomResourceDefinition": ("spec.group", "spec.scope", "spec.names.plural"),
}
_POD_MAY_CHANGE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_POD_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def _bad(field: str, value: Any, why: str) -> Cause:
    return "FieldValueInvalid", f'Invalid value: "{value}": {why}', field


def _forbidden(field: str, why: str) -> Cause:
    return "FieldValueForbidden", f"Forbidden: {why}", field


def _required(field: str, why: str = "") -> Cause:
    return "FieldValueRequired", f"Required value{': ' + why if why else ''}", field


def is_qualified(key: str) -> bool:
    """Whether a label, annotation or taint key is well formed."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.match(prefix)):
        return False
    return len(name) <= 63 and _NAME_PART.match(name) is not None


def _is_label_value(value: str) -> bool:
    return value == "" or (len(value) <= 63 and _NAME_PART.match(value) is not None)


def _name(resource: Resource, name: str) -> Iterable[Cause]:
    if resource.kind in _FREELY_NAMED:
        good = bool(name) and "/" not in name and "%" not in name
    elif resource.kind in _LABEL_NAMED:
        good = len(name) <= 63 and _LABEL.match(name) is not None
    else:
        good = len(name) <= 253 and _SUBDOMAIN.match(name) is not None
    if not good:
        yield _bad(
            "metadata.name", name,
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', and must start and end with an alphanumeric character",
        )  # fmt: skip


def _labels(labels: Mapping[str, str], field: str) -> Iterable[Cause]:
    for key, value in labels.items():
        if not is_qualified(key):
            yield _bad(field, key, "name part must be a qualified name of at most 63 characters")
        if not _is_label_value(value):
            yield _bad(field, value, "a valid label must be at most 63 alphanumeric characters")


def _metadata(resource: Resource, metadata: JsonObject) -> Iterable[Cause]:
    yield from _name(resource, metadata["name"])
    yield from _labels(metadata.get("labels") or {}, "metadata.labels")
    for key in metadata.get("annotations") or {}:
        if not is_qualified(key.lower()):
            yield _bad("metadata.annotations", key, "must be a qualified name")
    for finalizer in metadata.get("finalizers") or ():
        if not is_qualified(finalizer):
            yield _bad("metadata.finalizers", finalizer, "must be a qualified name")
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                yield _required(f"metadata.ownerReferences[{index}].{key}")


def _taints(taints: list[JsonObject]) -> Iterable[Cause]:
    """Check the taints of a Node; a real server, too, says that they are in its metadata.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
    (ValidateNode, validateNodeTaints), read 2026-11-22.
    """
    seen = set()
    for index, taint in enumerate(taints):
        field = f"metadata.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if not is_qualified(key):
            yield _bad(f"{field}.key", key, "must be a qualified name")
        if not _is_label_value(taint.get("value", "")):
            yield _bad(f"{field}.value", taint["value"], "must be a valid label value")
        if effect not in _EFFECTS:
            listed = ", ".join(f'"{value}"' for value in _EFFECTS)
            message = f'Unsupported value: "{effect}": supported values: {listed}'
            yield "FieldValueNotSupported", message, f"{field}.effect"
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect}
            why = f"Duplicate value: {shown}: taints must be unique by key and effect pair"
            yield "FieldValueDuplicate", why, field
        seen.add((key, effect))


def _pod_spec(spec: JsonObject, field: str) -> Iterable[Cause]:
    if not spec.get("containers"):
        yield _required(f"{field}.containers")
    names = set()
    for index, container in enumerate(spec.get("containers") or ()):
        place = f"{field}.containers[{index}]"
        if not container.get("name"):
            yield _required(f"{place}.name")
        elif container["name"] in names:
            yield "FieldValueDuplicate", f'Duplicate value: "{container["name"]}"', f"{place}.name"
        names.add(container.get("name"))
        if not container.get("image") and not field.startswith("spec.template"):
            yield _required(f"{place}.image")


def _selector(spec: JsonObject) -> Iterable[Cause]:
    pairs = (spec.get("selector") or {}).get("matchLabels") or {}
    if not spec.get("selector"):
        yield _required("spec.selector")
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in pairs.items()):
        yield _bad("spec.template.metadata.labels", labels, "`selector` does not match template "
                   "`labels`")  # fmt: skip


def _event(obj: JsonObject) -> Iterable[Cause]:
    """An event lives beside its object; one about a cluster-scoped object lives in `default`."""
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    if obj["metadata"]["namespace"] != (about or "default"):
        yield _bad("involvedObject.namespace", about, "does not match event.namespace")


def _autoscaler(spec: JsonObject) -> Iterable[Cause]:
    """Check what the controller reads of a HorizontalPodAutoscaler.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/autoscaling/validation/
    validation.go, read 2026-11-26.
    """
    target = spec.get("scaleTargetRef") or {}
    yield from (
        _required(f"spec.scaleTargetRef.{k}") for k in ("kind", "name") if not target.get(k)
    )
    most, least = spec.get("maxReplicas", 0), spec["minReplicas"]
    if most < 1:
        yield _bad("spec.maxReplicas", most, "must be greater than 0")
    elif most < least:
        yield _bad("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    for index, metric in enumerate(spec["metrics"]):
        field = f"spec.metrics[{index}]"
        kind = str(metric.get("type") or "")
        part = kind[:1].lower() + kind[1:]
        if not metric.get(part):
            yield _required(f"{field}.{part or 'type'}", "must specify a metric source")
        elif part == "resource":
            aim = metric[part].get("target") or {}
            if not metric[part].get("name"):
                yield _required(f"{field}.resource.name", "must specify a resource name")
            if not {"averageUtilization", "averageValue"} & aim.keys():
                why = "must set either a target raw value or a target utilization"
                yield _required(f"{field}.resource.target.averageUtilization", why)


def complaints(resource: Resource, obj: JsonObject) -> list[Cause]:
    """Return what is wrong with an object as a whole."""
    found = list(_metadata(resource, obj["metadata"]))
    spec = obj.get("spec") or {}
    if resource.is_pod:
        found += _pod_spec(spec, "spec")
    elif resource.kind == "Node" and not resource.group:
        found += _taints(spec.get("taints") or [])
    elif resource.group == "apps":
        found += _selector(spec)
        found += _pod_spec(spec["template"]["spec"], "spec.template.spec")
    elif resource.group == "batch" and resource.kind == "Job":
        found += _pod_spec(spec["template"]["spec"], "spec.template.spec")
    elif resource.kind == "HorizontalPodAutoscaler":
        found += _autoscaler(spec)
    elif resource.kind == "Event":
        found += _event(obj)
    elif resource.kind == "PodDisruptionBudget" and {"minAvailable", "maxUnavailable"} <= {*spec}:
        found.append(_bad("spec", "", "minAvailable and maxUnavailable cannot be both set"))
    return found


def change_complaints(resource: Resource, old: JsonObject, new: JsonObject) -> list[Cause]:
    """Return which changes between two states are not allowed."""
    found = list(_finalizers(old["metadata"], new["metadata"]))
    if resource.custom is not None:
        return found
    found += [
        _bad(path, _at(new, path), "field is immutable")
        for path in _IMMUTABLE.get(resource.kind, ())
        if _at(old, path) != _at(new, path)
    ]
    if resource.is_pod:
        found += _pod_change(old["spec"], new["spec"])
    elif resource.kind == "Node":
        found += _node_change(old.get("spec") or {}, new.get("spec") or {})
    elif resource.kind == "ConfigMap" and old.get("immutable") and _contents(old) != _contents(new):
        found.append(_forbidden("data", "field is immutable when `immutable` is set"))
    return found


def _at(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _contents(config_map: JsonObject) -> list[Any]:
    return [config_map.get(key) for key in ("immutable", "data", "binaryData")]


def _finalizers(old: JsonObject, new: JsonObject) -> Iterable[Cause]:
    added = set(new.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if old.get("deletionTimestamp") and added:
        why = f"no new finalizers can be added if the object is being deleted, found {added}"
        yield _forbidden("metadata.finalizers", why)


def _node_change(old: JsonObject, new: JsonObject) -> Iterable[Cause]:
    for key in ("providerID", "podCIDR"):
        if old.get(key) and old[key] != new.get(key):
            why = 'node updates may not change it except from "" to valid'
            yield _forbidden(f"spec.{key}", why)


def _pod_change(old: JsonObject, new: JsonObject) -> Iterable[Cause]:
    if _frozen(old) != _frozen(new) or not _gates_only_go(old, new):
        yield _forbidden("spec", _POD_RULE)
    kept = _without_seconds(new)
    if any(without_second not in kept for without_second in _without_seconds(old)):
        yield _forbidden("spec.tolerations", "existing toleration can not be modified except its "
                         "tolerationSeconds")  # fmt: skip


def _without_seconds(spec: JsonObject) -> list[JsonObject]:
    return [
        toleration | {"tolerationSeconds": None} for toleration in spec.get("tolerations") or ()
    ]


def _gates_only_go(old: JsonObject, new: JsonObject) -> bool:
    before = old.get("schedulingGates") or ()
    return all(scheduling_gate in before for scheduling_gate in new.get("schedulingGates") or ())


def _frozen(spec: JsonObject) -> JsonObject:
    kept = {key: value for key, value in spec.items() if key not in _POD_MAY_CHANGE}
    for name in ("containers", "initContainers"):
        if name in kept:
            kept[name] = [{**entry, "image": ""} for entry in kept[name]]
    if spec.get("schedulingGates"):
        # A gated pod may still be steered.
        kept.pop("nodeSelector", None)
        kept.pop("affinity", None)
    if (kept.get("terminationGracePeriodSeconds") or 0) < 0:
        kept["terminationGracePeriodSeconds"] = 1
    return kept
