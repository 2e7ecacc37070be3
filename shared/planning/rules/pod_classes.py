"""Classes: pods that are the same to every decision."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from shared.model.ec2.launches import PodRef
from shared.model.kubernetes.pods import LabelSelector, Pod, Scheduling


class PodClass(Struct, frozen=True, kw_only=True):
    """Pods with the same scheduling demands and, where rules select by them, the same labels.

    Attributes:
        labels: Of the first pod; the pods agree on those that any rule selects by.
        pods: Members, sorted.
    """

    namespace: str
    scheduling: Scheduling
    labels: Mapping[str, str]
    pods: tuple[PodRef, ...]


def group_by_class(pods: Iterable[Pod], others: Iterable[Scheduling] = ()) -> tuple[PodClass, ...]:
    """Return the pods in classes: highest priority first, then by their first pod's name.

    Labels split classes only where some pod's rule could tell them apart, so that a label such as
    a pod's own name does not make every pod a class of its own.

    Args:
        others: Scheduling demands of pods on nodes, existing or to come, whose rules may count
            these.
    """
    waiting = sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))
    numbers = _numbered(waiting)
    counted = frozenset(
        selected_keys(
            [
                *{id(pod.scheduling): pod.scheduling for pod in waiting}.values(),
                *{id(other): other for other in others}.values(),
            ]
        )
    )
    found: dict[tuple[object, ...], list[PodRef]] = {}
    first: dict[tuple[object, ...], Pod] = {}
    for pod in waiting:
        number = numbers[id(pod.scheduling)]
        identity: tuple[object, ...] = (number,)
        if counted:
            visible = tuple(sorted([label for label in pod.labels.items() if label[0] in counted]))
            identity = (number, pod.namespace, visible)
        ref = PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
        members = found.get(identity)
        if members is None:
            found[identity] = [ref]
            first[identity] = pod
        else:
            members.append(ref)
    classes = []
    for identity, members in found.items():
        first_pod = first[identity]
        classes.append(
            PodClass(
                namespace=first_pod.namespace,
                scheduling=first_pod.scheduling,
                labels=dict(first_pod.labels),
                pods=tuple(members),
            )
        )
    classes.sort(key=lambda pod_class: (-pod_class.scheduling.priority, pod_class.pods[0]))
    return tuple(classes)


def _numbered(pods: Sequence[Pod]) -> dict[int, int]:
    """Return equal numbers for equal demands, by identity: most pods share theirs."""
    by_value: dict[Scheduling, int] = {}
    by_identity: dict[int, int] = {}
    for pod in pods:
        key = id(pod.scheduling)
        if key not in by_identity:
            by_identity[key] = by_value.setdefault(pod.scheduling, len(by_value))
    return by_identity


def selected_keys(many: Iterable[Scheduling]) -> tuple[str, ...]:
    """Return the pod label keys that rules select by, sorted; with "" if there is any rule."""
    selectors: set[LabelSelector] = set()
    for scheduling in many:
        selectors.update(rule.selector for rule in scheduling.spreads if rule.selector)
        for terms in (scheduling.affinity, scheduling.anti_affinity, scheduling.ties):
            selectors.update(term.selector for term in terms if term.selector)
    found: set[str] = set()
    for selector in selectors:
        found.update(key for key, _ in selector.match_labels)
        found.update(requirement.key for requirement in selector.requirements)
        found.add("")  # a selector of everything still separates namespaces
    return tuple(sorted(found))
