"""Priority classes: what admission writes into a pod for its class.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/ (2026-11),
https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/priority/admission.go
(admitPod), 2026-11-29.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from shared.manifests.raw_json import Raw, integer, mapping, text
from shared.model.errors import NotAdmittedError

# Each API server creates them.
# Source: https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/scheduling/types.go
_BUILT_IN: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PREEMPTS: Final = "PreemptLowerPriority"


class PriorityClasses(Struct, frozen=True):
    """PriorityClasses.

    Attributes:
        by_name: Value and preemptionPolicy of each class.
        global_default: Name of the class of pods that name none, empty without one.
    """

    by_name: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    global_default: str = ""


def priorities_of(raws: Iterable[Raw]) -> PriorityClasses:
    """Return these PriorityClasses and the built-in ones.

    Of several global defaults the lowest counts.
    """
    found = {name: (value, _PREEMPTS) for name, value in _BUILT_IN.items()}
    usual: list[tuple[int, str]] = []
    for raw in raws:
        value = integer(raw.get("value")) or 0
        name = text(mapping(raw.get("metadata")).get("name"))
        found[name] = (value, text(raw.get("preemptionPolicy")) or _PREEMPTS)
        if raw.get("globalDefault") is True:
            usual.append((value, name))
    return PriorityClasses(found, min(usual, default=(0, ""))[1])


def with_priority(spec: Raw, priorities: PriorityClasses) -> Raw:
    """Return a pod spec as its admission completes it.

    Admission does not complete a template, only its pods when they are created. A class that does
    not exist adds nothing.

    Raises:
        NotAdmittedError: The pod has another priority or policy than its class.
    """
    named = text(spec.get("priorityClassName")) or priorities.global_default
    if named and named not in priorities.by_name:
        return spec
    value, policy = priorities.by_name.get(named, (0, _PREEMPTS))
    admitted = {"priority": value, "preemptionPolicy": policy}
    for name, right in admitted.items():
        if spec.get(name) not in (None, right):
            of_class = f"that of PriorityClass {named}" if named else "that of pods without a class"
            raise NotAdmittedError(f"{name} {spec[name]} is not {of_class}: {right}")
    return {**spec, **({"priorityClassName": named} if named else {}), **admitted}
