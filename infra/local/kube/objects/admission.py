"""What the default admission plug-ins of a real server do, as far as an autoscaler sees it."""

from infra.local.kube import errors
from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Kinds, Resource
from infra.local.kube.store import Store

NOT_READY = "node.kubernetes.io/not-ready"
_NOT_ENFORCED = {
    "Ingress": "no traffic is routed",
    "LimitRange": "pods are neither changed nor refused by it",
    "NetworkPolicy": "pods exchange no traffic",
    "ReplicationController": "no pod is made for it; write a Deployment",
    "ResourceQuota": "nothing is counted or refused by it",
}
"""Built-in kinds that are kept here without what gives them effect elsewhere."""
PROTECTED = ("default", "kube-system", "kube-public")


def not_enforced(resource: Resource) -> list[str]:
    """Return the warning for an object that is created and has no effect here; else nothing."""
    why = _NOT_ENFORCED.get(resource.kind) if resource.custom is None else None
    return [f"this {resource.kind} is kept, but the cluster is simulated: {why}"] if why else []


def check_namespace(store: Store, kinds: Kinds, resource: Resource, obj: JsonObject) -> None:
    """Refuse to create in a namespace that is absent or going."""
    name = obj["metadata"]["namespace"]
    entry = store.get(kinds.core("namespaces"), ("", name))
    if entry is None:
        raise errors.not_found("", "namespaces", name)
    if entry.fields["status.phase"] == "Terminating":
        why = f"unable to create new content in namespace {name} because it is being terminated"
        cause = ("NamespaceTerminating", f"namespace {name} is being terminated",
                 "metadata.namespace")  # fmt: skip
        named = obj["metadata"].get("name", "")
        raise errors.forbidden(resource.group, resource.plural, named, why, [cause])


def check_namespace_delete(name: str) -> None:
    """Refuse to delete the namespaces a cluster cannot be without."""
    if name in PROTECTED:
        raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")


def admit(store: Store, kinds: Kinds, resource: Resource, obj: JsonObject) -> None:
    """Change a new object the way the plug-ins do."""
    if resource.is_pod:
        _set_priority(store, kinds, obj)
    elif resource.kind == "Node" and not resource.group:
        _taint_node(obj)


def _taint_node(obj: JsonObject) -> None:
    taints = obj.setdefault("spec", {}).setdefault("taints", [])
    taint = {"key": NOT_READY, "effect": "NoSchedule"}
    if not any(
        (entry.get("key"), entry.get("effect")) == (NOT_READY, "NoSchedule") for entry in taints
    ):
        taints.append(taint)


def _set_priority(store: Store, kinds: Kinds, obj: JsonObject) -> None:
    resource = kinds.get("scheduling.k8s.io", "priorityclasses")
    spec = obj["spec"]
    name = spec.get("priorityClassName")
    chosen: JsonObject = {"value": 0, "preemptionPolicy": "PreemptLowerPriority"}
    if name:
        entry = store.get(resource, ("", name))
        if entry is None:
            why = f"no PriorityClass with name {name} was found"
            raise errors.forbidden("", "pods", obj["metadata"]["name"], why)
        chosen = entry.load()
    else:
        for entry in store.select(resource, "", lambda _: True):
            found = entry.load()
            if found.get("globalDefault"):
                chosen = found
                spec["priorityClassName"] = entry.key[1]
    spec["priority"] = chosen["value"]
    spec.setdefault("preemptionPolicy", chosen["preemptionPolicy"])
