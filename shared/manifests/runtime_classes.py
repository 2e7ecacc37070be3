"""Runtime classes: what their admission adds to a pod.

Source: https://kubernetes.io/docs/concepts/containers/runtime-class/#scheduling,
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/ (2026-11).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.manifests.fields import Raw, mapping, mappings, text, text_map


def runtimes_by_name(raws: Iterable[Raw]) -> dict[str, Raw]:
    """Return RuntimeClasses by their names."""
    return {text(mapping(raw.get("metadata")).get("name")): raw for raw in raws}


def names_runtime(spec: Raw) -> bool:
    """Return whether a pod spec names a class whose admission has not been at work on it."""
    return bool(text(spec.get("runtimeClassName"))) and not spec.get("overhead")


def with_runtime(spec: Raw, runtimes: Mapping[str, Raw]) -> Raw:
    """Return a pod spec as its admission completes it.

    A template has not been through admission: the overhead, node selector and tolerations of its
    runtime class come only when its pods are made. A class that is not there adds nothing.
    """
    found = runtimes.get(text(spec.get("runtimeClassName"))) if names_runtime(spec) else None
    if found is None:
        return spec
    where = mapping(found.get("scheduling"))
    completed: dict[str, Any] = {
        **spec,
        "overhead": mapping(mapping(found.get("overhead")).get("podFixed")),
    }
    if selector := text_map(where.get("nodeSelector")):
        completed["nodeSelector"] = {**text_map(spec.get("nodeSelector")), **selector}
    if tolerations := mappings(where.get("tolerations")):
        completed["tolerations"] = [*mappings(spec.get("tolerations")), *tolerations]
    return completed
