"""ResourceQuotas: which pods, and claims of StatefulSets, would not be created.

Source: https://github.com/kubernetes/kubernetes/tree/v1.36.3/pkg/quota/v1/evaluator/core: pods.go,
persistent_volume_claims.go;
staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (CheckRequest),
2026-11-29.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from shared.manifests.pod_bounds import PREFERRED, REQUIRED
from shared.manifests.pod_requests import pod_amounts, pod_requests
from shared.manifests.raw_json import Raw, containers_of, integer, mapping, mappings, text, texts
from shared.manifests.resource_names import HUGE_PAGES, is_extended_resource
from shared.manifests.volumes.claims import class_of
from shared.model.quantity import milli_units
from shared.model.resources import EPHEMERAL_STORAGE, Resources, format_amount

_OF_OBJECTS: Final = "count/pods"
_CLAIMS: Final = "persistentvolumeclaims"
_STORAGE: Final = "storage"
# Suffix of names that are about the claims of one class, after its name.
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"
_COMPUTED: Final = ("cpu", "memory")
_OF_BOTH: Final = (*_COMPUTED, "ephemeral-storage")


class _ResourceQuota(Struct):
    """One ResourceQuota, and what the counted pods use of it."""

    place: str
    scopes: Sequence[Raw]
    hard: Mapping[str, int]
    used: dict[str, int] = field(default_factory=dict)


class ResourceQuotas:
    """ResourceQuotas of all namespaces; pods are charged to them in the order they are counted."""

    def __init__(self, raws: Iterable[Raw]) -> None:
        self._by_namespace: dict[str, list[_ResourceQuota]] = {}
        for raw in sorted(raws, key=lambda raw: text(mapping(raw.get("metadata")).get("name"))):
            metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
            namespace = text(metadata.get("namespace"))
            place = f"ResourceQuota {namespace}/{text(metadata.get('name'))}"
            old = [
                {"scopeName": scope, "operator": "Exists"} for scope in texts(spec.get("scopes"))
            ]
            selected = mapping(spec.get("scopeSelector")).get("matchExpressions")
            scopes = [*old, *mappings(selected)]
            quota = _ResourceQuota(place, scopes, _hard(mapping(spec.get("hard"))))
            self._by_namespace.setdefault(namespace, []).append(quota)

    def count(self, namespace: str, spec: Raw, *, ended: bool) -> None:
        """Count an existing pod; a terminal pod counts only as an object."""
        for quota in self._of(namespace, spec):
            _charge(quota, {_OF_OBJECTS: 1} if ended else _usage(spec))

    def refusal(self, namespace: str, spec: Raw) -> str:
        """Return which quota keeps a new pod from being created; count it if none does.

        Args:
            namespace: Namespace of the pod.
            spec: Its spec as completed by admission.
        """
        matching = list(self._of(namespace, spec))
        if not matching:
            return ""
        usage = _usage(spec)
        for quota in matching:
            for name in sorted(set(quota.hard) & {f"{part}{of}" for part, of in _each_container()}):
                if missing := _without(spec, name):
                    return f"{quota.place}: container {missing} must say its {name}"
            if beyond := _beyond(quota, usage, "pod"):
                return beyond
        for quota in matching:
            _charge(quota, usage)
        return ""

    def count_claim(self, namespace: str, raw: Raw) -> None:
        """Count an existing PersistentVolumeClaim."""
        for quota in self._of_claims(namespace):
            _charge(quota, _usage_of_claim(raw))

    def claim_refusal(self, namespace: str, raw: Raw) -> str:
        """Return which quota keeps a new claim from being created; count it if none does."""
        usage = _usage_of_claim(raw)
        for quota in self._of_claims(namespace):
            if beyond := _beyond(quota, usage, "claim"):
                return beyond
        self.count_claim(namespace, raw)
        return ""

    def _of_claims(self, namespace: str) -> list[_ResourceQuota]:
        """Return the quotas that count claims: scopes are about pods."""
        return [quota for quota in self._by_namespace.get(namespace, ()) if not quota.scopes]

    def _of(self, namespace: str, spec: Raw) -> Iterator[_ResourceQuota]:
        for quota in self._by_namespace.get(namespace, ()):
            if all(_in_scope(scope, spec) for scope in quota.scopes):
                yield quota


def _each_container() -> Iterator[tuple[str, str]]:
    """Yield prefix and name of amounts that each container must set where a quota limits them."""
    for name in _COMPUTED:
        yield from (("", name), ("requests.", name), ("limits.", name))


def _hard(amounts: Raw) -> dict[str, int]:
    found = {}
    for name, amount in amounts.items():
        plain = _plain(name)
        try:
            found[name] = Resources.parse({plain: amount})[plain]
        except ValueError:
            continue
    return found


def _beyond(quota: _ResourceQuota, usage: Mapping[str, int], taker: str) -> str:
    """Return which resource of a quota does not suffice, empty if all do."""
    for name in sorted(set(quota.hard) & set(usage)):
        used, most = quota.used.get(name, 0), quota.hard[name]
        if usage[name] and used + usage[name] > most:
            shown = [_shown(name, amount) for amount in (used, most, usage[name])]
            taken = f"{shown[0]} of {shown[1]} are taken"
            return f"{quota.place}: {name}: {taken}, the {taker} takes {shown[2]}"
    return ""


def _charge(quota: _ResourceQuota, usage: Mapping[str, int]) -> None:
    for name, amount in usage.items():
        quota.used[name] = quota.used.get(name, 0) + amount


def _usage(spec: Raw) -> dict[str, int]:
    """Return what a pod uses of quotas, by the names that they use."""
    problems: list[str] = []
    requests = pod_requests(spec, {}, problems)
    overhead = Resources.parse(mapping(spec.get("overhead")))
    limits = pod_amounts(spec, "limits", problems)
    found = {_OF_OBJECTS: 1}
    for name, amount in requests.items:
        if name in (*_OF_BOTH, "pods") or name.startswith(HUGE_PAGES):
            found[name] = amount
        if name in _OF_BOTH or name.startswith(HUGE_PAGES) or is_extended_resource(name):
            found[f"requests.{name}"] = amount
    for name, amount in limits.items:
        if name in _OF_BOTH:
            found[f"limits.{name}"] = amount + overhead[name]
    return found


def _usage_of_claim(raw: Raw) -> dict[str, int]:
    """Return what a claim uses of quotas, by the names that they use."""
    spec = mapping(raw.get("spec"))
    requests = mapping(mapping(spec.get("resources")).get("requests"))
    try:
        size = Resources.parse({_STORAGE: requests.get(_STORAGE, 0)})[_STORAGE]
    except ValueError:
        size = 0
    found = {_CLAIMS: 1, f"count/{_CLAIMS}": 1, f"requests.{_STORAGE}": size}
    if name := class_of(mapping(raw.get("metadata")), spec):
        found |= {
            f"{name}{_OF_CLASS}{_CLAIMS}": 1,
            f"{name}{_OF_CLASS}requests.{_STORAGE}": size,
        }
    return found


def _without(spec: Raw, name: str) -> str:
    """Return the first container that does not set the amount, empty if each does."""
    if mapping(spec.get("resources")):
        return ""
    kind = "limits" if name.startswith("limits.") else "requests"
    plain = name.rpartition(".")[2]
    for container in containers_of(spec):
        if plain not in mapping(mapping(container.get("resources")).get(kind)):
            return text(container.get("name")) or "without a name"
    return ""


def _in_scope(scope: Raw, spec: Raw) -> bool:
    name, operator = text(scope.get("scopeName")), text(scope.get("operator"))
    if name in ("Terminating", "NotTerminating"):
        ends = integer(spec.get("activeDeadlineSeconds")) is not None
        return ends == (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        return _is_best_effort(spec) == (name == "BestEffort")
    if name == "CrossNamespacePodAffinity":
        return _reaches_other_namespaces(mapping(spec.get("affinity")))
    named = text(spec.get("priorityClassName"))
    if operator in ("In", "NotIn"):
        return (named in texts(scope.get("values"))) == (operator == "In")
    return bool(named) == (operator == "Exists")


def _is_best_effort(spec: Raw) -> bool:
    amounts = (
        milli_units(amount)
        for owner in (spec, *containers_of(spec))
        for field_name in ("requests", "limits")
        for name, amount in mapping(mapping(owner.get("resources")).get(field_name)).items()
        if name in _COMPUTED
    )
    return not any(amounts)


def _reaches_other_namespaces(affinity: Raw) -> bool:
    terms: list[Raw] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        section = mapping(affinity.get(kind))
        terms += mappings(section.get(REQUIRED))
        terms += [
            mapping(entry.get("podAffinityTerm")) for entry in mappings(section.get(PREFERRED))
        ]
    return any(term.get("namespaces") or "namespaceSelector" in term for term in terms)


def _shown(name: str, amount: int) -> str:
    plain = _plain(name)
    return format_amount(EPHEMERAL_STORAGE if plain == _STORAGE else plain, amount)


def _plain(name: str) -> str:
    """Return the resource in a name of a quota."""
    return name.rpartition(_OF_CLASS)[2].removeprefix("requests.").removeprefix("limits.")
