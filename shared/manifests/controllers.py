"""Pods as controllers create them from a template: their names and additional labels.

Hashes and uids that only a cluster knows are invented here, different for each workload.

Source: https://kubernetes.io/docs/reference/labels-annotations-taints/ (2026-11),
https://github.com/kubernetes/kubernetes/tree/v1.36.3/pkg/controller: deployment/sync.go
(getNewReplicaSet), statefulset/stateful_set_utils.go (initIdentity, updateStorage, setPodRevision),
job/job_controller.go (manageJob), job/indexed_job_utils.go, daemon/util/daemonset_util.go
(CreatePodTemplate); pkg/registry/batch/job/strategy.go (generateSelector), 2026-11-29.
"""

import hashlib
import uuid
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from shared.manifests.raw_json import Raw, integer, mapping, text, text_map

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION_HASH: Final = "controller-revision-hash"
GENERATION: Final = "pod-template-generation"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_JOB_NAMES: Final = ("job-name", "batch.kubernetes.io/job-name")
_JOB_UIDS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
# The letters of hashes, without vowels: k8s.io/apimachinery/pkg/util/rand (SafeEncodeString).
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


class Workload(Struct, frozen=True, kw_only=True):
    """A workload as its controller reads it.

    Attributes:
        kind: Kind of the controller that creates its pods.
        name: Prefix of their names.
        spec: The spec that has the template.
        metadata: Metadata of the workload.
        status: Status of the workload.
        revision: Hash of the current template where the cluster has one, else empty.
    """

    kind: str
    namespace: str
    name: str
    spec: Raw
    metadata: Raw = field(default_factory=dict)
    status: Raw = field(default_factory=dict)
    revision: str = ""


class PodIdentity(Struct, frozen=True, kw_only=True):
    """Name of a pod of a workload, and the labels that its controller adds to the template's."""

    name: str
    labels: Mapping[str, str]


def missing_identities(
    workload: Workload,
    replicas: int,
    taken: Mapping[str, Mapping[str, str]],
    leaving: Collection[str] = (),
) -> Iterator[PodIdentity]:
    """Yield name and labels of each pod that the workload lacks.

    Args:
        workload: The workload.
        replicas: How many pods it should have.
        taken: Names of its existing pods that count, with their labels.
        leaving: Names of its terminating pods that are replaced at once.
    """
    common = controller_labels(workload)
    if workload.kind == "StatefulSet":
        start = integer(mapping(workload.spec.get("ordinals")).get("start")) or 0
        for ordinal in range(start, start + replicas):
            name = f"{workload.name}-{ordinal}"
            if name not in taken:
                yield PodIdentity(
                    name=name, labels={**common, _POD_NAME: name, _POD_INDEX: str(ordinal)}
                )
        return
    indexed = workload.kind == "Job" and workload.spec.get("completionMode") == "Indexed"
    done = _ranges(text(workload.status.get("completedIndexes"))) if indexed else []
    running = {text(labels.get(COMPLETION_INDEX)) for labels in taken.values()}
    number = 0
    missing = replicas - len(taken)
    while missing > 0:
        name = f"{workload.name}-{number}"
        ended = max((last for first, last in done if first <= number <= last), default=None)
        if ended is not None:
            number = ended
        elif not (name in taken or name in leaving or (indexed and str(number) in running)):
            missing -= 1
            own = {COMPLETION_INDEX: str(number)} if indexed else {}
            yield PodIdentity(name=name, labels={**common, **own})
        number += 1


def replaces_at_once(workload: Workload) -> bool:
    """Return whether a terminating pod does not count, so that it is replaced at once.

    The pods of a StatefulSet have fixed names: a new pod waits until the old one is gone. A Job
    waits if its podReplacementPolicy is Failed, or if it has a podFailurePolicy.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-replacement-policy,
    https://github.com/kubernetes/kubernetes/tree/v1.36.3/pkg/controller: controller_utils.go
    (IsPodActive), job/job_controller.go (onlyReplaceFailedPods), 2026-11-29.
    """
    if workload.kind == "Job":
        policy = text(workload.spec.get("podReplacementPolicy"))
        return policy != "Failed" and not workload.spec.get("podFailurePolicy")
    return workload.kind != "StatefulSet"


def controller_labels(workload: Workload) -> dict[str, str]:
    """Return the labels that a controller adds to each pod of a workload."""
    template = mapping(workload.spec.get("template"))
    revision = workload.revision or _invented_hash(workload)
    if workload.kind == "Deployment":
        return {TEMPLATE_HASH: revision}
    if workload.kind == "StatefulSet":
        update_revision = text(workload.status.get("updateRevision"))
        return {REVISION_HASH: update_revision or f"{workload.name}-{revision}"}
    if workload.kind == "DaemonSet":
        return {REVISION_HASH: revision, GENERATION: daemonset_generation(workload.metadata) or "1"}
    if workload.kind == "Job" and workload.spec.get("manualSelector") is not True:
        template_labels = text_map(mapping(template.get("metadata")).get("labels"))
        place = f"{workload.namespace}/{workload.name}"
        uid = text(workload.metadata.get("uid")) or str(uuid.uuid5(uuid.NAMESPACE_URL, place))
        added = {
            **dict.fromkeys(_JOB_NAMES, workload.name),
            **dict.fromkeys(_JOB_UIDS, uid),
        }
        return {name: template_labels.get(name, value) for name, value in added.items()}
    return {}


def daemonset_generation(metadata: Raw) -> str:
    """Return the generation of a DaemonSet's template from its annotation, empty without one."""
    return text_map(metadata.get("annotations")).get(_GENERATION_ANNOTATION, "")


def _invented_hash(workload: Workload) -> str:
    """Return an invented hash for the template of a workload."""
    place = f"{workload.kind}/{workload.namespace}/{workload.name}".encode()
    number = int.from_bytes(hashlib.blake2b(place, digest_size=8).digest(), "big")
    return "".join(_LETTERS[number // len(_LETTERS) ** n % len(_LETTERS)] for n in range(10))


def _ranges(written: str) -> list[tuple[int, int]]:
    """Return first and last of each range of a list such as `0-2,5`; other parts are left out.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/
    (completedIndexes), 2026-11-29.
    """
    found = []
    for part in written.split(","):
        first, _, last = part.partition("-")
        if all(number.isdecimal() and len(number) < 10 for number in (first, last or first)):
            found.append((int(first), int(last or first)))
    return found
