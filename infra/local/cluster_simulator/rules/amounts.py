"""Quantities and requests as the scheduler counts them (a second opinion: standard library only).

Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/ and
https://kubernetes.io/docs/tasks/configure-pod-container/assign-pod-level-resources/ (2026-08).
"""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Final

Object = Mapping[str, Any]

_EXPONENTS: Final = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_NUMBER: Final = re.compile(
    r"^([+-]?[0-9]*\.?[0-9]*)(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)$"
)
_POD_LEVEL: Final = frozenset({"cpu", "memory"})
_SMALL: Final = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}


@cache
def parse(resource: str, text: str) -> int:
    """Return cpu in millicores and anything else in base units, rounded up."""
    match = _NUMBER.match(text)
    if match is None or match[1] in {"", "+", "-", "."}:
        raise ValueError(f"{resource}: {text!r} is not a quantity; write for example 500m or 2Gi")
    value = Fraction(match[1]) * Fraction(f"1{match[2]}" if match[2] else 1)
    suffix = match[3] or ""
    if suffix in _SMALL:
        value *= _SMALL[suffix]
    elif suffix.endswith("i"):
        value *= 1024 ** _EXPONENTS[suffix[:-1]]
    else:
        value *= 1000 ** _EXPONENTS[suffix]
    if resource == "cpu":
        value *= 1000
    return -(-value.numerator // value.denominator)


def amounts(quantities: Object | None) -> dict[str, int]:
    """Return a resource list of a manifest as whole numbers (see `parse`)."""
    return {name: parse(name, str(text)) for name, text in (quantities or {}).items()}


def pod_requests(pod: Object) -> dict[str, int]:
    """Return what the scheduler counts for a pod, including `pods: 1`.

    Containers and sidecars add up; a plain init container counts with the sidecars started before
    it, and the larger of both holds. Pod-level requests replace the sum; overhead is added. A
    container that is resized counts with what it has, if that is more.
    """
    spec = pod["spec"]
    status = pod.get("status") or {}
    given = _given(status)
    refused = _resize_is_refused(status)

    def needs(container: Object) -> dict[str, int]:
        has = given.get(container.get("name", ""), {})
        return has if has and refused else _largest(_container_requests(container), has)

    running = _sum(needs(c) for c in spec.get("containers") or ())
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        while_it_runs = _sum((sidecars, needs(container)))
        if container.get("restartPolicy") == "Always":
            sidecars = while_it_runs
        peak = _largest(peak, while_it_runs)
    total = _largest(_sum((running, sidecars)), peak)
    total.update(_pod_level(spec.get("resources") or {}, total))
    total = _sum((total, amounts(spec.get("overhead"))))
    total["pods"] = 1
    return {name: amount for name, amount in total.items() if amount}


def _pod_level(resources: Object, summed: Mapping[str, int]) -> dict[str, int]:
    """Return what is said for the whole pod; a limit says it where no container does."""
    limits = {k: v for k, v in amounts(resources.get("limits")).items() if k not in summed}
    found = {**limits, **amounts(resources.get("requests"))}
    return {k: v for k, v in found.items() if k in _POD_LEVEL or k.startswith("hugepages-")}


def _given(status: Object) -> dict[str, dict[str, int]]:
    """Return what the kubelet has given each container, by name."""
    found = {}
    for kind in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(kind) or ():
            has = (entry.get("resources") or {}).get("requests")
            found[entry["name"]] = _largest(amounts(entry.get("allocatedResources")), amounts(has))
    return found


def _resize_is_refused(status: Object) -> bool:
    return any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )


def _container_requests(container: Object) -> dict[str, int]:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _largest(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {**left, **right}}
