"""LimitRanges: the defaults that LimitRanger adds to containers, and what it refuses.

Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/limitranger/
admission.go, pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem), 2026-11-29.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Final

from shared.manifests.pod_requests import pod_amounts
from shared.manifests.raw_json import CONTAINERS, Raw, containers_of, mapping, mappings, text
from shared.model.errors import NotAdmittedError
from shared.model.quantity import milli_units

_CONTAINER: Final = "Container"
_POD: Final = "Pod"


def limits_by_namespace(raws: Iterable[Raw]) -> dict[str, tuple[Raw, ...]]:
    """Return LimitRanges by their namespaces, sorted by name.

    Where several set a default of one resource, the API server applies any of them; here the first
    by name counts.
    """
    found: dict[str, list[Raw]] = {}
    for raw in sorted(raws, key=lambda raw: text(mapping(raw.get("metadata")).get("name"))):
        found.setdefault(text(mapping(raw.get("metadata")).get("namespace")), []).append(raw)
    return {namespace: tuple(of_it) for namespace, of_it in found.items()}


def with_limits(spec: Raw, ranges: Iterable[Raw]) -> Raw:
    """Return a pod's spec with default limits and requests of containers that have none."""
    for limit_range in ranges:
        limits: dict[str, object] = {}
        requests: dict[str, object] = {}
        for item in _items(limit_range, _CONTAINER):
            usual = {**mapping(item.get("max")), **mapping(item.get("default"))}
            limits.update(usual)
            requests.update(
                {**mapping(item.get("min")), **usual, **mapping(item.get("defaultRequest"))}
            )
        spec = {
            **spec,
            **{
                name: [_filled(entry, limits, requests) for entry in mappings(spec.get(name))]
                for name in CONTAINERS
                if mappings(spec.get(name))
            },
        }
    return spec


def check_limits(spec: Raw, ranges: Iterable[Raw]) -> None:
    """Check requests and limits of a pod and its containers.

    Raises:
        NotAdmittedError: For the first amount that a LimitRange does not allow.
    """
    for limit_range in ranges:
        metadata = mapping(limit_range.get("metadata"))
        place = f"LimitRange {text(metadata.get('namespace'))}/{text(metadata.get('name'))}"
        for item in _items(limit_range, _CONTAINER):
            for container in containers_of(spec):
                resources = mapping(container.get("resources"))
                who = f"container {text(container.get('name'))}"
                asked, most = mapping(resources.get("requests")), mapping(resources.get("limits"))
                _check(place, who, item, asked, most)
        for item in _items(limit_range, _POD):
            asked, most = (
                pod_amounts(spec, name, []).to_quantities() for name in ("requests", "limits")
            )
            _check(place, "the pod", item, asked, most)


def _filled(container: Raw, limits: Raw, requests: Raw) -> Raw:
    resources = mapping(container.get("resources"))
    return {
        **container,
        "resources": {
            **resources,
            "limits": {**limits, **mapping(resources.get("limits"))},
            "requests": {**requests, **mapping(resources.get("requests"))},
        },
    }


def _items(limit_range: Raw, kind: str) -> Iterator[Raw]:
    for item in mappings(mapping(limit_range.get("spec")).get("limits")):
        if item.get("type") == kind:
            yield item


def _check(place: str, who: str, item: Raw, asked: Raw, most: Raw) -> None:
    for problem in _problems(item, asked, most):
        raise NotAdmittedError(f"{place}: {who}: {problem}")


def _problems(item: Raw, asked: Raw, most: Raw) -> Iterator[str]:
    amounts = {"request": asked, "limit": most}
    for field, needed, words in (
        ("min", "request", "at least"),
        ("max", "limit", "at most"),
    ):
        for name, bound, edge in _bounds(item, field):
            if name not in amounts[needed]:
                yield f"{name}: no {needed}; it must be {words} {bound}"
            for what, given in amounts.items():
                amount = milli_units(given.get(name))
                beyond = amount is not None and (amount < edge if field == "min" else amount > edge)
                if name in given and beyond:
                    yield f"{name}: {what} {given[name]}; it must be {words} {bound}"
    for name, bound, ratio in _bounds(item, "maxLimitRequestRatio"):
        request, limit = milli_units(asked.get(name)), milli_units(most.get(name))
        if not request or not limit:
            yield f"{name}: needs request and limit, the limit at most {bound} times the request"
        elif Fraction(limit, request) * 1000 > ratio:
            yield f"{name}: limit {most[name]} is more than {bound} times the request {asked[name]}"


def _bounds(item: Raw, field: str) -> Iterator[tuple[str, object, int]]:
    for name, bound in mapping(item.get(field)).items():
        if (amount := milli_units(bound)) is not None:
            yield name, bound, amount
