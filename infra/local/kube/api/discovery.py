"""Discovery: which groups, versions and resources there are."""

from infra.local.kube.api import metrics
from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Kinds, Resource

VERSION = {
    "major": "1",
    "minor": "35",
    "gitVersion": "v1.35.4+embedded",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-04-15T00:00:00Z",
    "goVersion": "",
    "compiler": "python",
    "platform": "linux/amd64",
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCES: dict[str, tuple[str, str, str, list[str]]] = {
    "binding": ("", "v1", "Binding", ["create"]),
    "eviction": ("policy", "v1", "Eviction", ["create"]),
    "scale": ("autoscaling", "v1", "Scale", ["get", "patch", "update"]),
    "log": ("", "v1", "Pod", ["get"]),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ["create"]),
}


def _subresource(resource: Resource, name: str) -> tuple[str, str, str, list[str]]:
    own = (resource.group, resource.version, resource.kind, ["get", "patch", "update"])
    return _SUBRESOURCES.get(name, own)


def _entries(resource: Resource) -> list[JsonObject]:
    entry: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    found = [entry]
    for name in resource.subresources:
        group, version, kind, verbs = _subresource(resource, name)
        one: JsonObject = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": verbs,
        }
        if (group, version) != (resource.group, resource.version):
            one |= {"group": group, "version": version}
        found.append(one)
    return found


def _group(name: str, versions: list[str]) -> JsonObject:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _groups(kinds: Kinds) -> dict[str, list[str]]:
    return {**kinds.groups(), metrics.GROUP: [metrics.VERSION]}


def answer(kinds: Kinds, path: str) -> JsonObject | None:
    """Return the body of a discovery path, or None when it is none; not the aggregated form."""
    parts = [part for part in path.split("/") if part]
    if parts == ["version"]:
        return dict(VERSION)
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if parts == ["apis"]:
        groups = [_group(name, list_) for name, list_ in _groups(kinds).items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if parts[:1] == ["apis"] and len(parts) == 2 and parts[1] in _groups(kinds):
        found = _group(parts[1], _groups(kinds)[parts[1]])
        return {"kind": "APIGroup", "apiVersion": "v1"} | found
    if path.rstrip("/") == metrics.ROOT:
        return metrics.resources()
    return _resource_list(kinds, parts) if _is_version(kinds, parts) else None


def _is_version(kinds: Kinds, parts: list[str]) -> bool:
    if parts == ["api", "v1"]:
        return True
    return (
        parts[:1] == ["apis"] and len(parts) == 3 and parts[2] in kinds.groups().get(parts[1], ())
    )


def _resource_list(kinds: Kinds, parts: list[str]) -> JsonObject:
    group = "" if parts[0] == "api" else parts[1]
    version = parts[-1]
    chosen = [
        resource
        for resource in kinds.all()
        if (resource.group, resource.version) == (group, version)
    ]
    name = f"{group}/{version}" if group else version
    listed = [entry for resource in chosen for entry in _entries(resource)]
    head: JsonObject = {"kind": "APIResourceList", "apiVersion": "v1"}
    return head | {"groupVersion": name, "resources": listed}
