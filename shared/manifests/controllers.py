"""Pods as controllers make them of a template: their names, and the labels that are added.

Hashes and uids that only a cluster knows are made up here, other ones for each workload.

Source: https://kubernetes.io/docs/reference/labels-annotations-taints/ (2026-11),
https://github.com/kubernetes/kubernetes/tree/v1.36.3/pkg/controller: deployment/sync.go
(getNewReplicaSet), statefulset/stateful_set_utils.go (initIdentity, updateStorage, setPodRevision),
job/job_controller.go (manageJob), job/indexed_job_utils.go, daemon/util/daemonset_util.go
(CreatePodTemplate); pkg/registry/batch/job/strategy.go (generateSelector), 2026-11-29.
"""

import hashlib
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from shared.manifests.fields import Raw, integer, mapping, text, text_map

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION_HASH: Final = "controller-revision-hash"
GENERATION: Final = "pod-template-generation"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_GENERATION_SAID: Final = "deprecated.daemonset.template.generation"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_JOB_NAMES: Final = ("job-name", "batch.kubernetes.io/job-name")
_JOB_UIDS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
# Letters that make no words: k8s.io/apimachinery/pkg/util/rand (SafeEncodeString).
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload as its controller sees it.

    Attributes:
        kind: Of the controller that makes its pods.
        name: The begin of their names.
        spec: That with the template.
        metadata: Of the workload.
        status: Of the workload.
        revision: Hash of the present template where the cluster has said it, else empty.
    """

    kind: str
    namespace: str
    name: str
    spec: Raw
    metadata: Raw = field(default_factory=dict)
    status: Raw = field(default_factory=dict)
    revision: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What tells a pod from its siblings, and what its controller adds to the template's labels."""

    name: str
    labels: Mapping[str, str]


def identities(
    workload: Workload,
    wanted: int,
    taken: Mapping[str, Mapping[str, str]],
    leaving: Collection[str] = (),
) -> Iterator[Identity]:
    """Yield what is missing of a workload's pods.

    Args:
        workload: The workload.
        wanted: How many pods it shall have.
        taken: Names of the pods that are there and count, with their labels.
        leaving: Names of the pods that are there still, but have their successors at once.
    """
    common = labels_of_all(workload)
    if workload.kind == "StatefulSet":
        start = integer(mapping(workload.spec.get("ordinals")).get("start")) or 0
        for ordinal in range(start, start + wanted):
            name = f"{workload.name}-{ordinal}"
            if name not in taken:
                yield Identity(
                    name=name, labels={**common, _POD_NAME: name, _POD_INDEX: str(ordinal)}
                )
        return
    indexed = workload.kind == "Job" and workload.spec.get("completionMode") == "Indexed"
    done = _ranges(text(workload.status.get("completedIndexes"))) if indexed else []
    running = {text(labels.get(COMPLETION_INDEX)) for labels in taken.values()}
    number = 0
    missing = wanted - len(taken)
    while missing > 0:
        name = f"{workload.name}-{number}"
        ended = max((last for first, last in done if first <= number <= last), default=None)
        if ended is not None:
            number = ended
        elif not (name in taken or name in leaving or (indexed and str(number) in running)):
            missing -= 1
            own = {COMPLETION_INDEX: str(number)} if indexed else {}
            yield Identity(name=name, labels={**common, **own})
        number += 1


def replaces_at_once(workload: Workload) -> bool:
    """Return whether a pod that is being deleted does not count, so that another is made now.

    The pods of a StatefulSet have names of their own: the next one waits for the end of the last.
    A Job waits where it says so, or says what failures of its pods mean.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-replacement-policy,
    https://github.com/kubernetes/kubernetes/tree/v1.36.3/pkg/controller: controller_utils.go
    (IsPodActive), job/job_controller.go (onlyReplaceFailedPods), 2026-11-29.
    """
    if workload.kind == "Job":
        policy = text(workload.spec.get("podReplacementPolicy"))
        return policy != "Failed" and not workload.spec.get("podFailurePolicy")
    return workload.kind != "StatefulSet"


def labels_of_all(workload: Workload) -> dict[str, str]:
    """Return what a controller adds to the labels of each pod of a workload."""
    template = mapping(workload.spec.get("template"))
    revision = workload.revision or _made_up(workload)
    if workload.kind == "Deployment":
        return {TEMPLATE_HASH: revision}
    if workload.kind == "StatefulSet":
        told = text(workload.status.get("updateRevision"))
        return {REVISION_HASH: told or f"{workload.name}-{revision}"}
    if workload.kind == "DaemonSet":
        return {REVISION_HASH: revision, GENERATION: daemonset_generation(workload.metadata) or "1"}
    if workload.kind == "Job" and workload.spec.get("manualSelector") is not True:
        said = text_map(mapping(template.get("metadata")).get("labels"))
        place = f"{workload.namespace}/{workload.name}"
        uid = text(workload.metadata.get("uid")) or str(uuid.uuid5(uuid.NAMESPACE_URL, place))
        added = {
            **dict.fromkeys(_JOB_NAMES, workload.name),
            **dict.fromkeys(_JOB_UIDS, uid),
        }
        return {name: said.get(name, value) for name, value in added.items()}
    return {}


def daemonset_generation(metadata: Raw) -> str:
    """Return the generation of a DaemonSet's template, empty where it does not say it."""
    return text_map(metadata.get("annotations")).get(_GENERATION_SAID, "")


def _made_up(workload: Workload) -> str:
    """Return a hash as the template of a workload may have it."""
    place = f"{workload.kind}/{workload.namespace}/{workload.name}".encode()
    number = int.from_bytes(hashlib.blake2b(place, digest_size=8).digest(), "big")
    return "".join(_LETTERS[number // len(_LETTERS) ** n % len(_LETTERS)] for n in range(10))


def _ranges(written: str) -> list[tuple[int, int]]:
    """Return first and last of the ranges of a list such as `0-2,5`; other parts are left out.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/
    (completedIndexes), 2026-11-29.
    """
    found = []
    for part in written.split(","):
        first, _, last = part.partition("-")
        if all(number.isdecimal() and len(number) < 10 for number in (first, last or first)):
            found.append((int(first), int(last or first)))
    return found
