"""Scale, binding and eviction."""

from infra.local.cluster_simulator.rules.matching import is_true, matches_selector
from infra.local.kube import errors
from infra.local.kube.calls import Call, WriteOptions, timestamp
from infra.local.kube.errors import ApiError, JsonObject, bad_request, success
from infra.local.kube.objects.lifecycle import Lifecycle
from infra.local.kube.objects.patches import json_patch, merge_patch
from infra.local.kube.selectors import selector_text
from infra.local.kube.store import Entry

_MAX_DISRUPTED = 2000


def perform(lifecycle: Lifecycle, call: Call) -> tuple[int, JsonObject] | None:
    """Do what a subresource with rules of its own is for; None for `status`."""
    match call.subresource, call.method:
        case "scale", "GET":
            entry = lifecycle.require(call.resource, call.namespace, call.name)
            return 200, _scale(entry)
        case "scale", "PUT" | "PATCH":
            return 200, _set_scale(lifecycle, call)
        case "binding", "POST":
            return 201, _bind(lifecycle, call)
        case "eviction", "POST":
            return 201, _evict(lifecycle, call)
        case "status" | "finalize", "GET" | "PUT" | "PATCH":
            return None
    message = "the server does not allow this method on the requested resource"
    raise ApiError(405, "MethodNotAllowed", message)


# -- scale --------------------------------------------------------------------------------


def _scale(entry: Entry) -> JsonObject:
    obj = entry.load()
    selector = selector_text(obj["spec"].get("selector"))
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": obj["spec"].get("replicas", 0)},
        "status": {"replicas": obj["status"].get("replicas", 0), "selector": selector},
    }


def _set_scale(lifecycle: Lifecycle, call: Call) -> JsonObject:
    entry = lifecycle.require(call.resource, call.namespace, call.name)
    scale = _scale(entry)
    body = call.content()
    if call.method == "PUT":
        scale = body
    elif "json-patch" in call.headers.get("content-type", ""):
        scale = json_patch(scale, body)
    else:
        scale = merge_patch(scale, body)
    replicas = (scale.get("spec") or {}).get("replicas")
    if type(replicas) is not int or replicas < 0:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = ("FieldValueInvalid", why, "spec.replicas")
        raise errors.invalid("autoscaling", "Scale", call.name, [cause])
    obj = entry.load()
    obj["spec"]["replicas"] = replicas
    if version := scale["metadata"].get("resourceVersion"):
        obj["metadata"]["resourceVersion"] = version
    return _scale(lifecycle.update(call.resource, entry, obj, call.write_options()))


# -- binding ------------------------------------------------------------------------------


def _bind(lifecycle: Lifecycle, call: Call) -> JsonObject:
    body = call.object()
    metadata = body.get("metadata") or {}
    name = call.name or metadata.get("name", "")
    entry = lifecycle.require(call.resource, call.namespace, name)
    target = body.get("target") or {}
    if target.get("kind", "Node") not in {"", "Node"} or not target.get("name"):
        cause = ("FieldValueRequired", "Required value: a Node by name", "target")
        raise errors.invalid("", "Binding", name, [cause])
    obj = entry.load()
    why = ""
    if obj["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{obj["spec"]["nodeName"]}"'
    elif obj["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif obj["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    for key in ("uid", "resourceVersion"):
        if metadata.get(key) and metadata[key] != obj["metadata"][key]:
            why = f"Precondition failed: {key} {metadata[key]}, found {obj['metadata'][key]}"
    if why:
        raise errors.conflict("", "pods/binding", name, why)
    obj["spec"]["nodeName"] = target["name"]
    if annotations := metadata.get("annotations"):
        obj["metadata"].setdefault("annotations", {}).update(annotations)
    moment = timestamp(lifecycle.now())
    _set_condition(obj, {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment})
    lifecycle.update(call.resource, entry, obj, call.write_options(), subresource="binding")
    return success("", "", "") | {"code": 201}


def _set_condition(obj: JsonObject, condition: JsonObject) -> None:
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    kept = [entry for entry in conditions if entry["type"] != condition["type"]]
    obj["status"]["conditions"] = [*kept, {"lastProbeTime": None} | condition]


# -- eviction -----------------------------------------------------------------------------


def _evict(lifecycle: Lifecycle, call: Call) -> JsonObject:
    body = call.object()
    named = (body.get("metadata") or {}).get("name", call.name)
    if body.get("kind", "Eviction") != "Eviction" or named != call.name:
        raise bad_request(f"name in URL does not match name in Eviction object: {named}")
    if body.get("apiVersion", "policy/v1") != "policy/v1":
        raise bad_request(f"no kind Eviction is registered for version {body['apiVersion']!r}")
    entry = lifecycle.require(call.resource, call.namespace, call.name)
    options = call.delete_options(body.get("deleteOptions") or {})
    pod = entry.load()
    ends_anyway = (pod.get("status") or {}).get("phase") in {"Pending", "Succeeded", "Failed"}
    if not ends_anyway and not pod["metadata"].get("deletionTimestamp"):
        _spend_budget(lifecycle, call, pod, dry_run=options.dry_run)
        if not options.dry_run:
            entry = _mark_evicted(lifecycle, call, entry)
    lifecycle.deletion.delete(call.resource, entry, options)
    return success("", "", "") | {"code": 201}


def _mark_evicted(lifecycle: Lifecycle, call: Call, entry: Entry) -> Entry:
    pod = entry.load()
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": timestamp(lifecycle.now()),
    }
    _set_condition(pod, condition)
    options = call.write_options()
    return lifecycle.update(call.resource, entry, pod, options, subresource="status")


def _spend_budget(lifecycle: Lifecycle, call: Call, pod: JsonObject, *, dry_run: bool) -> None:
    budgets = lifecycle.kinds.get("policy", "poddisruptionbudgets")
    labels = pod["metadata"].get("labels") or {}
    found = [
        (entry, obj)
        for entry in lifecycle.store.select(budgets, call.namespace, lambda _: True)
        if matches_selector((obj := entry.load()).get("spec", {}).get("selector"), labels)
    ]
    if not found:
        return
    if len(found) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
        raise ApiError(500, "InternalError", message)
    entry, budget = found[0]
    if not is_true(pod, "Ready") and _may_evict_unhealthy(budget):
        return
    _check_budget(budget)
    status = budget["status"]
    status["disruptionsAllowed"] -= 1
    disrupted = status.setdefault("disruptedPods", {})
    disrupted[call.name] = timestamp(lifecycle.now())
    if not dry_run:
        lifecycle.update(budgets, entry, budget, WriteOptions(), subresource="status")


def _may_evict_unhealthy(budget: JsonObject) -> bool:
    if budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    healthy: int = status.get("currentHealthy", 0)
    return desired > 0 and healthy >= desired


def _check_budget(budget: JsonObject) -> None:
    name, status = budget["metadata"]["name"], budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        raise _too_many(f"The disruption budget {name} is still being processed by the server.")
    allowed = status.setdefault("disruptionsAllowed", 0)
    if allowed < 0 or len(status.get("disruptedPods") or {}) > _MAX_DISRUPTED:
        why = "pdb disruptions allowed is negative or too many pods are being disrupted"
        raise errors.forbidden("policy", "poddisruptionbudgets", name, why)
    if allowed == 0:
        raise _too_many(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )


def _too_many(why: str) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    return ApiError(429, "TooManyRequests", message, details=details)
