"""How many replicas autoscalers of pods let their workloads have."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from functions.cli.plan.reading.checks import raise_first_problem, replicas_of, required_section
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.workloads import Key, key_of
from shared.manifests.raw_json import integer, mapping
from shared.model.dollars_and_counts import counted
from shared.model.values import replace


class _Fields(Struct, frozen=True):
    """The fields of a kind, with their defaults; no default for one that must be given."""

    group: str
    least: tuple[str, int]
    most: tuple[str, int | None]


# Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/
# horizontal-pod-autoscaler-v2/ and https://keda.sh/docs/2.18/reference/scaledobject-spec/, 2026-11.
AUTOSCALERS: Final[Mapping[str, _Fields]] = {
    "HorizontalPodAutoscaler": _Fields("autoscaling", ("minReplicas", 1), ("maxReplicas", None)),
    "ScaledObject": _Fields("keda.sh", ("minReplicaCount", 0), ("maxReplicaCount", 100)),
}


class ReplicaBounds(Struct, frozen=True, kw_only=True):
    """The least and the most replicas of a workload."""

    workload: Key
    least: int
    most: int


def with_autoscaled_replicas(documents: Sequence[Document], notes: list[str]) -> list[Document]:
    """Return the documents without autoscalers, their workloads with replicas within the bounds.

    A workload has one replica where it states none, and no autoscaler changes a workload of none.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
    (implicit maintenance-mode deactivation), 2026-11.

    Args:
        notes: Gets a line for each workload with other replicas than it states, and for each
            autoscaler whose workload is not among the documents.

    Raises:
        InvalidDocumentError: If an autoscaler has a missing or wrong field.
    """
    bounds: dict[Key, tuple[Document, ReplicaBounds]] = {}
    for document in filter(is_autoscaler, documents):
        found = replica_bounds(document)
        bounds[found.workload] = document, found
    workloads = [
        _within(document, *bounds.pop(key_of(document)), notes)
        if key_of(document) in bounds
        else document
        for document in documents
        if not is_autoscaler(document)
    ]
    for (kind, namespace, name), (autoscaler, _) in bounds.items():
        notes.append(
            f"{autoscaler.kind} {namespace}/{autoscaler.name}: left out: "
            f"{kind} {namespace}/{name}, which it scales, is not among the manifests"
        )
    return workloads


def with_replicas(document: Document, count: int) -> Document:
    """Return a workload with another number of replicas; a Job with another parallelism."""
    field = "parallelism" if document.kind == "Job" else "replicas"
    spec = {**mapping(document.raw.get("spec")), field: count}
    return replace(document, raw={**document.raw, "spec": spec})


def _within(
    document: Document, autoscaler: Document, bounds: ReplicaBounds, notes: list[str]
) -> Document:
    """Return a workload with the replicas that its autoscaler leaves or gives it."""
    written = mapping(document.raw.get("spec")).get("replicas")
    stated = 1 if written is None else integer(written)
    if not stated:
        return document
    count = min(max(stated, bounds.least), bounds.most)
    if written is not None and count == stated:
        return document
    fields = AUTOSCALERS[autoscaler.kind]
    field, bound = (
        (fields.most[0], bounds.most) if count < stated else (fields.least[0], bounds.least)
    )
    notes.append(
        f"{document.kind} {document.namespace}/{document.name} is planned with "
        f"{counted(count, 'replica')}: it states {'none' if written is None else stated}, and "
        f"the {field} of {autoscaler.kind} {autoscaler.name} is {bound}"
    )
    return with_replicas(document, count)


def is_autoscaler(document: Document) -> bool:
    """Return whether a document is an autoscaler of pods."""
    fields = AUTOSCALERS.get(document.kind)
    return fields is not None and document.api_version.partition("/")[0] == fields.group


def replica_bounds(document: Document) -> ReplicaBounds:
    """Return the bounds that an autoscaler states.

    Raises:
        InvalidDocumentError: If a field is missing or wrong.
    """
    fields = AUTOSCALERS[document.kind]
    spec = required_section(document, "spec")
    target = required_section(document, "spec", "scaleTargetRef")
    name = target.text("name")
    if not name:
        target.refuse("name", "write the name of a workload")
    raise_first_problem(document, target.problems)
    (least_field, least), (most_field, most) = fields.least, fields.most
    least = replicas_of(spec, least_field, least)
    if most is None and not spec.has(most_field):
        spec.refuse(most_field, "write the most replicas")
    most = replicas_of(spec, most_field, most or 0)
    if most < least:
        spec.refuse(most_field, f"write {least} or more, which is {least_field}")
    raise_first_problem(document, spec.problems)
    kind = target.text("kind") or "Deployment"
    return ReplicaBounds(workload=(kind, document.namespace, name), least=least, most=most)
