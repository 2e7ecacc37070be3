"""What the next pod of a DaemonSet will request, as its running pods show.

A LimitRange, a VerticalPodAutoscaler or a webhook may add to the requests of its template. Nodes
that are chosen without these additions are too small, and are launched again and again.

Source: https://github.com/kubernetes/autoscaler/blob/vertical-pod-autoscaler-1.5.1/
vertical-pod-autoscaler/docs/components.md (admission controller),
https://kubernetes.io/docs/concepts/policy/limit-range/, 2026-11-29.
"""

from collections.abc import Iterable, Sequence

from shared.manifests.controllers import GENERATION
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace


def with_standing(daemonsets: Sequence[DaemonSet], bound: Iterable[Pod]) -> tuple[DaemonSet, ...]:
    """Return the DaemonSets, each with its newest pod's requests where these are larger.

    Pods of an older template do not count: the next pod is created from the current one.

    Args:
        daemonsets: DaemonSets with the requests of their templates.
        bound: Pods on nodes.
    """
    generations = {(found.namespace, found.name): found.generation for found in daemonsets}
    newest: dict[tuple[str, str], Pod] = {}
    for pod in bound:
        if pod.owner is None or not pod.is_daemon or pod.is_terminal:
            continue
        key = (pod.namespace, pod.owner.name)
        if generations.get(key) == pod.labels.get(GENERATION, "") and (
            key not in newest or _made(newest[key]) < _made(pod)
        ):
            newest[key] = pod
    return tuple(
        _at_least(daemon_set, newest.get((daemon_set.namespace, daemon_set.name)))
        for daemon_set in daemonsets
    )


def _made(pod: Pod) -> tuple[float, str]:
    """Return the sort key of pods by creation."""
    return pod.created_at.timestamp() if pod.created_at else 0.0, pod.uid


def _at_least(daemon_set: DaemonSet, pod: Pod | None) -> DaemonSet:
    asked = daemon_set.scheduling.requests
    requests = asked if pod is None else asked.largest(pod.scheduling.requests)
    if requests == asked:
        return daemon_set
    return replace(daemon_set, scheduling=replace(daemon_set.scheduling, requests=requests))
