"""Which resources are served, and under which names."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_BUILT_IN = """
|v1|pods|Pod|ns|po|all|status,binding,eviction,log
|v1|nodes|Node||no||status
|v1|namespaces|Namespace||ns||status,finalize
|v1|services|Service|ns|svc|all|status
|v1|endpoints|Endpoints|ns|ep||
|v1|configmaps|ConfigMap|ns|cm||
|v1|secrets|Secret|ns|||
|v1|serviceaccounts|ServiceAccount|ns|sa||token
|v1|replicationcontrollers|ReplicationController|ns|rc|all|status
|v1|resourcequotas|ResourceQuota|ns|quota||status
|v1|limitranges|LimitRange|ns|limits||
|v1|events|Event|ns|ev||
|v1|persistentvolumes|PersistentVolume||pv||status
|v1|persistentvolumeclaims|PersistentVolumeClaim|ns|pvc||status
apps|v1|deployments|Deployment|ns|deploy|all|status,scale
apps|v1|replicasets|ReplicaSet|ns|rs|all|status,scale
apps|v1|daemonsets|DaemonSet|ns|ds|all|status
apps|v1|statefulsets|StatefulSet|ns|sts|all|status,scale
batch|v1|jobs|Job|ns||all|status
batch|v1|cronjobs|CronJob|ns|cj|all|status
autoscaling|v2|horizontalpodautoscalers|HorizontalPodAutoscaler|ns|hpa|all|status
autoscaling|v1|horizontalpodautoscalers|HorizontalPodAutoscaler|ns|hpa|all|status
policy|v1|poddisruptionbudgets|PodDisruptionBudget|ns|pdb||status
discovery.k8s.io|v1|endpointslices|EndpointSlice|ns|||
networking.k8s.io|v1|networkpolicies|NetworkPolicy|ns|netpol||
networking.k8s.io|v1|ingresses|Ingress|ns|ing||status
networking.k8s.io|v1|ingressclasses|IngressClass||||
storage.k8s.io|v1|storageclasses|StorageClass||sc||
storage.k8s.io|v1|csinodes|CSINode||||
storage.k8s.io|v1|volumeattachments|VolumeAttachment||||status
node.k8s.io|v1|runtimeclasses|RuntimeClass||||
scheduling.k8s.io|v1|priorityclasses|PriorityClass||pc||
coordination.k8s.io|v1|leases|Lease|ns|||
rbac.authorization.k8s.io|v1|roles|Role|ns|||
rbac.authorization.k8s.io|v1|rolebindings|RoleBinding|ns|||
rbac.authorization.k8s.io|v1|clusterroles|ClusterRole||||
rbac.authorization.k8s.io|v1|clusterrolebindings|ClusterRoleBinding||||
apiextensions.k8s.io|v1|customresourcedefinitions|CustomResourceDefinition||crd,crds||status
"""

# Version of a group's types in the tables of fields and messages that is left out of their names.
_USUAL_VERSIONS = {"autoscaling": "v2"}
_GENERATIONS = {"apps", "batch", "policy", "networking.k8s.io", "apiextensions.k8s.io",
                "discovery.k8s.io"}  # fmt: skip
_RETURNS_DELETED = {
    "pods", "services", "persistentvolumes", "persistentvolumeclaims", "serviceaccounts",
    "namespaces",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource under one API version.

    Attributes:
        subresources: Names below an object that are served.
        custom: Version entry of the CustomResourceDefinition; None for built-in kinds.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    custom: dict[str, Any] | None = None
    prefix: bytes = field(init=False)

    def __post_init__(self) -> None:
        opening = f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'
        object.__setattr__(self, "prefix", opening.encode())

    @property
    def api_version(self) -> str:
        """`v1`, or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def type_name(self) -> str:
        """What the type of its objects is called in the tables; empty for custom resources."""
        return type_name(self.group, self.version, self.kind) if self.custom is None else ""

    @property
    def is_converted(self) -> bool:
        """Whether its objects are stored in the form of another version."""
        return (self.group, self.version) == ("autoscaling", "v1")

    @property
    def storage(self) -> tuple[str, str]:
        """What objects are stored under: the versions of one kind share their objects."""
        return self.group, self.plural

    @property
    def has_status(self) -> bool:
        """Whether `status` is written through its own path only."""
        return "status" in self.subresources

    @property
    def counts_generations(self) -> bool:
        """Whether metadata.generation grows with each change of what is desired."""
        return self.custom is not None or self.group in _GENERATIONS

    @property
    def returns_deleted(self) -> bool:
        """Whether DELETE answers the object rather than a Status."""
        return self.group == "" and self.plural in _RETURNS_DELETED

    @property
    def is_pod(self) -> bool:
        """Whether this is the core Pod: the only kind deleted gracefully."""
        return self.plural == "pods" and self.group == ""


def type_name(group: str, version: str, kind: str) -> str:
    """Return what a type is called in the tables of fields and messages."""
    start = (group or "core").partition(".")[0]
    if version == _USUAL_VERSIONS.get(start, "v1"):
        return f"{start}.{kind}"
    return f"{start}.{version}.{kind}"


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def built_in() -> list[Resource]:
    """Return the built-in resources in the order of discovery."""
    found = []
    for line in _BUILT_IN.split():
        group, version, plural, kind, scope, short, categories, subresources = line.split("|")
        found.append(
            Resource(
                group=group,
                version=version,
                plural=plural,
                kind=kind,
                namespaced=scope == "ns",
                singular=kind.lower(),
                short_names=_words(short),
                categories=_words(categories),
                subresources=_words(subresources),
            )
        )
    return found


def custom_resources(crd: dict[str, Any]) -> list[Resource]:
    """Return one resource for each served version of a CustomResourceDefinition."""
    spec = crd["spec"]
    names = spec["names"]
    found = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        found.append(
            Resource(
                group=spec["group"],
                version=version["name"],
                plural=names["plural"],
                kind=names["kind"],
                namespaced=spec["scope"] == "Namespaced",
                singular=names.get("singular") or names["kind"].lower(),
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=tuple(sorted(version.get("subresources") or {}, reverse=True)),
                custom=version,
            )
        )
    return found


class Kinds:
    """The resources served at this moment: built-in ones and registered custom ones."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Resource] = {}
        self.add(built_in())

    def add(self, resources: Iterable[Resource]) -> None:
        """Serve these resources, replacing what had the same path."""
        for resource in resources:
            self._found[resource.group, resource.version, resource.plural] = resource

    def drop(self, group: str, plural: str) -> None:
        for key in [key for key in self._found if (key[0], key[2]) == (group, plural)]:
            del self._found[key]

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._found.get((group, version, plural))

    def core(self, plural: str) -> Resource:
        """Return a resource of the core group."""
        return self._found["", "v1", plural]

    def get(self, group: str, plural: str) -> Resource:
        """Return some served version of a resource."""
        for key, resource in self._found.items():
            if (key[0], key[2]) == (group, plural):
                return resource
        raise KeyError(f"{plural}.{group}")

    def all(self) -> list[Resource]:
        return list(self._found.values())

    def groups(self) -> dict[str, list[str]]:
        """Return the versions of each group, in order of registration."""
        groups: dict[str, list[str]] = {}
        for group, version, _ in self._found:
            versions = groups.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return groups
