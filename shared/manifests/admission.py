"""Pods as the API server admits them: what its admission adds, and what it refuses.

The plugins that change what scheduling reads, in the order of the API server: defaults of the
API, LimitRanger, Priority, DefaultTolerationSeconds, ExtendedResourceToleration, RuntimeClass;
then validation, and what LimitRanger refuses. All but ExtendedResourceToleration are on by default,
and that one is on in EKS. Webhooks are not known here.

Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubeapiserver/options/plugins.go
(AllOrderedPlugins), pkg/apis/core/v1/defaults.go (SetDefaults_Pod),
plugin/pkg/admission/defaulttolerationseconds and extendedresourcetoleration (admission.go),
https://docs.aws.amazon.com/eks/latest/userguide/platform-versions.html, 2026-11-29.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from shared.manifests.limit_ranges import check_limits, limits_by_namespace, with_limits
from shared.manifests.pod_requests import is_pod_level, pod_amounts
from shared.manifests.priority_classes import PriorityClasses, priorities_of, with_priority
from shared.manifests.raw_json import CONTAINERS, Raw, containers_of, mapping, mappings, text
from shared.manifests.resource_names import is_extended_resource, is_overcommit_allowed
from shared.manifests.runtime_classes import runtimes_by_name, with_runtime
from shared.model.errors import NotAdmittedError
from shared.model.quantity import milli_units

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_EVICTED_AFTER_SECONDS: Final = 300


class Admission(Struct, frozen=True, kw_only=True):
    """The objects of a cluster that admission reads.

    Attributes:
        limit_ranges: LimitRanges by namespace.
        runtimes: RuntimeClasses by name; a pod that names an unknown one is not changed.
        priorities: The PriorityClasses.
    """

    limit_ranges: Mapping[str, tuple[Raw, ...]] = field(default_factory=dict)
    runtimes: Mapping[str, Raw] = field(default_factory=dict)
    priorities: PriorityClasses = field(default_factory=lambda: priorities_of(()))

    def admit(self, namespace: str, spec: Raw) -> tuple[Raw, str]:
        """Return the spec of a new pod as it is stored, and why it is refused, empty if not.

        Args:
            namespace: Namespace of the pod.
            spec: Its spec as its author or its controller writes it.
        """
        ranges = self.limit_ranges.get(namespace, ())
        completed = spec
        try:
            completed = with_limits(with_defaults(completed), ranges)
            completed = with_priority(completed, self.priorities)
            completed = _with_eviction_delays(completed)
            completed = _with_resources_tolerated(completed)
            completed = with_runtime(completed, self.runtimes)
            # The API server validates first; the error of a LimitRange says more.
            check_limits(completed, ranges)
            _check_amounts(completed)
        except NotAdmittedError as error:
            return completed, str(error)
        return completed, ""


def admission_of(raws: Iterable[Raw]) -> Admission:
    """Return the objects that admission reads; objects of other kinds are left out."""
    found: dict[str, list[Raw]] = {}
    for raw in raws:
        found.setdefault(text(raw.get("kind")), []).append(raw)
    return Admission(
        limit_ranges=limits_by_namespace(found.get("LimitRange", ())),
        runtimes=runtimes_by_name(found.get("RuntimeClass", ())),
        priorities=priorities_of(found.get("PriorityClass", ())),
    )


def with_defaults(spec: Raw) -> Raw:
    """Return the spec of a pod with requests where there are only limits."""
    completed = {**spec}
    for name in CONTAINERS:
        if mappings(spec.get(name)):
            completed[name] = [_with_requests(entry) for entry in mappings(spec.get(name))]
    resources = mapping(spec.get("resources"))
    limits = mapping(resources.get("limits"))
    if limits:
        together = pod_amounts({**completed, "resources": None}, "requests", []).to_quantities()
        requests = {
            **{name: limits[name] for name in limits if is_pod_level(name)},
            **{
                name: amount
                for name, amount in together.items()
                if is_pod_level(name) and is_overcommit_allowed(name)
            },
            **mapping(resources.get("requests")),
        }
        completed["resources"] = {**resources, "requests": requests}
    return completed


def with_toleration(tolerations: Iterable[Raw], added: Raw) -> list[Raw]:
    """Return the tolerations with `added`, which replaces a toleration of the same taints.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis/core/helper/helpers.go
    (AddOrUpdateTolerationInPod), 2026-11-29.
    """
    found: list[Raw] = []
    there = False
    for toleration in tolerations:
        same = all(
            (text(toleration.get(part)) or default) == (text(added.get(part)) or default)
            for part, default in (("key", ""), ("effect", ""), ("operator", "Equal"), ("value", ""))
        )
        found.append(added if same else toleration)
        there = there or same
    return found if there else [*found, added]


def _with_requests(container: Raw) -> Raw:
    resources = mapping(container.get("resources"))
    limits = mapping(resources.get("limits"))
    if not limits:
        return container
    requests = {**limits, **mapping(resources.get("requests"))}
    return {**container, "resources": {**resources, "requests": requests}}


def _with_eviction_delays(spec: Raw) -> Raw:
    tolerations = mappings(spec.get("tolerations"))
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _EVICTED_AFTER_SECONDS,
        }
        for key in (_NOT_READY, _UNREACHABLE)
        if not any(
            text(toleration.get("key")) in (key, "")
            and text(toleration.get("effect")) in ("NoExecute", "")
            for toleration in tolerations
        )
    ]
    return {**spec, "tolerations": [*tolerations, *added]} if added else spec


def _with_resources_tolerated(spec: Raw) -> Raw:
    names = {
        name
        for container in containers_of(spec)
        for name in mapping(mapping(container.get("resources")).get("requests"))
        if is_extended_resource(name)
    }
    if not names:
        return spec
    tolerations = mappings(spec.get("tolerations"))
    for name in sorted(names):
        added = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        tolerations = with_toleration(tolerations, added)
    return {**spec, "tolerations": tolerations}


def _check_amounts(spec: Raw) -> None:
    """Refuse a pod or container that requests more than its limit, or than its pod's limit.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis/core/validation/
    validation.go (validateResourceRequirements, validatePodResourceConsistency), 2026-11-29.
    """
    of_pod = mapping(mapping(spec.get("resources")).get("limits"))
    _check_owner("the pod", spec)
    for container in containers_of(spec):
        _check_owner(f"container {text(container.get('name'))}", container)
    for container in mappings(spec.get("containers")):
        for name, most in mapping(mapping(container.get("resources")).get("limits")).items():
            if name in of_pod and (milli_units(most) or 0) > (milli_units(of_pod[name]) or 0):
                who = f"container {text(container.get('name'))}"
                raise NotAdmittedError(f"{who}: {name}: limit {most} is above the pod's")
    requests = mapping(mapping(spec.get("resources")).get("requests"))
    together = pod_amounts({**spec, "resources": None}, "requests", []).to_quantities()
    for name, asked in together.items():
        if name in requests and (milli_units(asked) or 0) > (milli_units(requests[name]) or 0):
            own = f"the pod: {name}: request {requests[name]}"
            raise NotAdmittedError(f"{own} is below that of its containers, {asked}")


def _check_owner(who: str, owner: Raw) -> None:
    resources = mapping(owner.get("resources"))
    limits = mapping(resources.get("limits"))
    for name, asked in mapping(resources.get("requests")).items():
        shown = f"{who}: {name}: request {asked}"
        wanted, most = milli_units(asked), milli_units(limits.get(name))
        if name not in limits:
            if not is_overcommit_allowed(name):
                raise NotAdmittedError(f"{shown} needs a limit of the same amount")
        elif not is_overcommit_allowed(name) and wanted != most:
            raise NotAdmittedError(f"{shown} and limit {limits[name]} must be equal")
        elif wanted is not None and most is not None and wanted > most:
            raise NotAdmittedError(f"{shown} is above its limit {limits[name]}")
