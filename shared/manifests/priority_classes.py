"""Priority classes: the number that their admission writes into a pod.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/ (2026-11).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from shared.manifests.fields import Raw, integer, mapping, text

# Each API server makes them.
# Source: https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/scheduling/types.go
_BUILT_IN: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


@dataclass(frozen=True, slots=True)
class Priorities:
    """Values of PriorityClasses.

    Attributes:
        by_name: Of each class.
        usual: Of pods that name none: that of the global default, else 0.
    """

    by_name: Mapping[str, int] = field(default_factory=dict, hash=False)
    usual: int = 0


def priorities_of(raws: Iterable[Raw]) -> Priorities:
    """Return the values of these PriorityClasses and of those that each cluster has.

    Of several global defaults the lowest counts.
    """
    values = dict(_BUILT_IN)
    usual: list[int] = []
    for raw in raws:
        value = integer(raw.get("value")) or 0
        values[text(mapping(raw.get("metadata")).get("name"))] = value
        if raw.get("globalDefault") is True:
            usual.append(value)
    return Priorities(values, min(usual, default=0))


def with_priority(spec: Raw, priorities: Priorities) -> Raw:
    """Return a pod spec as its admission completes it.

    A template has not been through admission: the number comes only when its pods are made. A
    class that is not there adds nothing.
    """
    if spec.get("priority") is not None:
        return spec
    named = text(spec.get("priorityClassName"))
    value = priorities.by_name.get(named, 0) if named else priorities.usual
    return {**spec, "priority": value} if value else spec
