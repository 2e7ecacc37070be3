"""How many replicas autoscalers of pods let their workloads have."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from functions.cli.plan.reading.checks import raise_first_problem, replicas_of, required_section
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.workloads import Key


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
