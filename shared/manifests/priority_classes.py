"""Priority classes: what their admission writes into a pod.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/ (2026-11),
https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/priority/admission.go
(admitPod), 2026-11-29.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from shared.manifests.fields import Raw, integer, mapping, text
from shared.model.errors import NotAdmittedError

# Each API server makes them.
# Source: https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/scheduling/types.go
_BUILT_IN: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PREEMPTS: Final = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class Priorities:
    """PriorityClasses.

    Attributes:
        by_name: Value of each class, and whom its pods preempt.
        usual: Name of the class of pods that name none, empty without one.
    """

    by_name: Mapping[str, tuple[int, str]] = field(default_factory=dict, hash=False)
    usual: str = ""


def priorities_of(raws: Iterable[Raw]) -> Priorities:
    """Return these PriorityClasses and those that each cluster has.

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
    return Priorities(found, min(usual, default=(0, ""))[1])


def with_priority(spec: Raw, priorities: Priorities) -> Raw:
    """Return a pod spec as its admission completes it.

    A template has not been through admission: the number comes only when its pods are made. A
    class that is not there adds nothing.

    Raises:
        NotAdmittedError: The pod says another priority or policy than its class.
    """
    named = text(spec.get("priorityClassName")) or priorities.usual
    if named and named not in priorities.by_name:
        return spec
    value, policy = priorities.by_name.get(named, (0, _PREEMPTS))
    admitted = {"priority": value, "preemptionPolicy": policy}
    for name, right in admitted.items():
        if spec.get(name) not in (None, right):
            of_class = f"that of PriorityClass {named}" if named else "that of pods without a class"
            raise NotAdmittedError(f"{name} {spec[name]} is not {of_class}: {right}")
    return {**spec, **({"priorityClassName": named} if named else {}), **admitted}
