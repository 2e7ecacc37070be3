"""Classes: pods that are the same to every decision."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shared.model.launch import PodRef
from shared.model.pods import Pod, Scheduling


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClass:
    """Pods with the same scheduling demands and the same labels.

    Attributes:
        labels: Of every pod, for those selectors of others that may count it.
        pods: Members, sorted.
    """

    namespace: str
    scheduling: Scheduling
    labels: Mapping[str, str] = field(hash=False)
    pods: tuple[PodRef, ...]


def group(pods: Iterable[Pod], standing: Iterable[Pod] = ()) -> tuple[PodClass, ...]:
    """Return the pods in classes: highest priority first, then by their first pod's name.

    Labels split classes only where some pod's rule could tell them apart, so that a label such as
    a pod's own name does not make every pod a class of its own.

    Args:
        standing: Pods on nodes, whose rules may count the others.
    """
    listed = sorted(pods, key=lambda pod: (pod.key, pod.uid))
    counted = _selected_keys((*listed, *standing))
    found: dict[object, list[Pod]] = {}
    for pod in listed:
        visible = tuple(sorted((k, v) for k, v in pod.labels.items() if k in counted))
        namespace = pod.namespace if counted else ""
        found.setdefault((namespace, pod.scheduling, visible), []).append(pod)
    classes = [
        PodClass(
            namespace=members[0].namespace,
            scheduling=members[0].scheduling,
            labels=dict(members[0].labels),
            pods=tuple(
                PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid) for pod in members
            ),
        )
        for members in found.values()
    ]
    classes.sort(key=lambda one: (-one.scheduling.priority, one.pods[0]))
    return tuple(classes)


def _selected_keys(pods: Iterable[Pod]) -> frozenset[str]:
    keys: set[str] = set()
    for scheduling in {pod.scheduling for pod in pods}:
        selectors = [rule.selector for rule in scheduling.spreads]
        selectors += [rule.selector for rule in scheduling.affinity]
        selectors += [rule.selector for rule in scheduling.anti_affinity]
        for selector in selectors:
            if selector is not None:
                keys.update(key for key, _ in selector.match_labels)
                keys.update(one.key for one in selector.requirements)
                keys.add("")  # a selector of everything still separates namespaces
    return frozenset(keys)
