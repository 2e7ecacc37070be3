"""Events about pods: the first pods of a workload have one each, the others one together."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from shared.model.dollars_and_counts import counted
from shared.model.ec2.launches import PodRef
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.nodes.events.node_events import event_on
from shared.ports import KubernetesEvent, Severity

# Users read the Events of some pods of a workload; thousands of equal Events add nothing.
MOST_OF_WORKLOAD: Final = 20


def each_workload(
    pod_texts: Sequence[tuple[Pod | PodRef, str]], reason: str
) -> Iterator[KubernetesEvent]:
    """Yield Events about pods, sorted by workload: at most 20 on pods of one controller.

    One Event on the controller counts its other pods. A pod without a controller has its own.

    Args:
        pod_texts: Pods, each with the message of its Event.
        reason: The reason of the Events.
    """
    workloads: dict[tuple[str, ControllerRef | None], list[tuple[Pod | PodRef, str]]] = {}
    for subject, text in pod_texts:
        owner = subject.owner if isinstance(subject, Pod) else None
        workloads.setdefault((subject.namespace, owner), []).append((subject, text))
    for (namespace, owner), members in workloads.items():
        pods = _mixed(members)
        most = len(pods) if owner is None else MOST_OF_WORKLOAD
        for subject, text in pods[:most]:
            yield event_on(subject, reason, text)
        if owner is not None and len(pods) > most:
            yield _on_owner(owner, namespace, reason, [text for _, text in pods[most:]])


def _mixed(pods: Sequence[tuple[Pod | PodRef, str]]) -> list[tuple[Pod | PodRef, str]]:
    """Return pods by name, one of each text in turn, so that a rare text is among the first."""
    seen: Counter[str] = Counter()
    placed = []
    for subject, text in sorted(pods, key=lambda entry: entry[0].name):
        placed.append((seen[text], subject, text))
        seen[text] += 1
    placed.sort(key=lambda entry: entry[0])
    return [(subject, text) for _, subject, text in placed]


def _on_owner(
    owner: ControllerRef, namespace: str, reason: str, texts: Sequence[str]
) -> KubernetesEvent:
    """Return the Event that counts pods; its message ends with the text of the first."""
    first, kinds = texts[0], len(set(texts))
    differ = "" if kinds == 1 else f" (of the first; {counted(kinds, 'reason')} in all)"
    return KubernetesEvent(
        kind=owner.kind,
        namespace=namespace,
        name=owner.name,
        uid=owner.uid,
        severity=Severity.WARNING,
        reason=reason,
        message=f"{counted(len(texts), 'more pod')}{differ}: {first}",
        api_version=owner.api_version,
    )
