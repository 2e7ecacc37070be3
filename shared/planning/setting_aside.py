"""Which pods are set aside when a decision takes more steps than it may."""

from collections.abc import Sequence
from typing import Final

from shared.model.ec2.launches import PodRef
from shared.model.kubernetes.pods import Pod
from shared.planning.offerings.picks import MOST_PICKS
from shared.planning.work import Work

# About two CPU seconds.
BUDGET_STEPS: Final = 2_000_000
# A quarter of the work is kept: pods not reached when the budget ran out cost about as much again.
_KEPT: Final = 4
_PATIENT: Final = 2
SET_ASIDE: Final = (
    "deferred to a later plan: planning for this pod exceeds the work that one plan may do; use "
    "fewer affinity terms, preferences and rules between pods"
)
NO_PICK: Final = (
    f"deferred to a later plan: one plan uses at most {MOST_PICKS} values of the labels that a "
    "NodePool or Provisioner leaves open, and other pods use them"
)


def ref_of(pod: Pod) -> PodRef:
    """Return the reference by which a plan names a pod."""
    return PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)


def split_by_cost(waiting: Sequence[Pod], work: Work, tries: int) -> tuple[list[Pod], list[Pod]]:
    """Return the pods to place now, which took at most a quarter of the work, and the others.

    The namespace that took most work loses its most expensive class first, so that a namespace
    with few and simple pods keeps them all.
    """
    classes = work.classes
    steps = [1 + work.steps_by_group.get(index, 0) for index in range(len(classes))]
    total = sum(steps)
    by_namespace: dict[str, list[int]] = {}
    for index, pod_class in enumerate(classes):
        by_namespace.setdefault(pod_class.namespace, []).append(index)
    steps_by_namespace = {
        name: sum(steps[index] for index in some) for name, some in by_namespace.items()
    }
    for some in by_namespace.values():
        some.sort(key=lambda index: (steps[index], -classes[index].scheduling.priority, index))
    left, aside = total, set[PodRef]()
    dearest = max(steps_by_namespace, key=lambda entry: (steps_by_namespace[entry], entry))
    # After some tries, half of the classes of the most expensive namespace are set aside anyway.
    least = max(len(by_namespace[dearest]) // 2 if tries > _PATIENT else 0, 1)
    while left * _KEPT > total or least > 0:
        least -= 1
        name = max(steps_by_namespace, key=lambda entry: (steps_by_namespace[entry], entry))
        index = by_namespace[name].pop()
        aside.update(classes[index].pods)
        left -= steps[index]
        steps_by_namespace[name] -= steps[index]
        if not by_namespace[name]:
            del steps_by_namespace[name]
    now = [pod for pod in waiting if ref_of(pod) not in aside]
    return now, [pod for pod in waiting if ref_of(pod) in aside]
