"""Validates manifests from files before they are planned.

The decoders are lenient: what the API server has validated needs no second check. No API server has
validated files, so a field that decoders would silently ignore is refused here, with its path.
"""

from typing import Final

from functions.cli.plan.reading.documents import Document, InvalidDocumentError
from shared.manifests.problems import FieldProblem, Section
from shared.model import labels as keys
from shared.model.kubernetes.pods import SpreadPolicy

# The most pods of a workload.
MAX_REPLICAS: Final = 200_000


def checked_metadata(document: Document) -> Section:
    """Return the document's metadata, name and labels checked.

    Raises:
        InvalidDocumentError: If there is no name (or generateName), or a field has another type.
    """
    problems: list[FieldProblem] = []
    found = Section(document.raw, "", problems).section("metadata")
    metadata = found or Section({}, "metadata", problems)
    if not metadata.text("name") and not metadata.text("generateName") and not problems:
        metadata.refuse("name", "write a name")
    metadata.text("namespace")
    for field in ("labels", "annotations"):
        metadata.text_map(field)
    raise_first_problem(document, problems)
    return metadata


def required_section(document: Document, *path: str) -> Section:
    """Return the section under a path such as `spec`, `template`; it must exist.

    Its problems are collected for `raise_first_problem`.

    Raises:
        InvalidDocumentError: If some part of the path is missing or no object.
    """
    section = Section(document.raw, "", [])
    for name in path:
        if not section.has(name):
            section.refuse(name, "must be an object with named fields")
            found = None
        else:
            found = section.section(name)
        if found is None:
            break
        section = found
    raise_first_problem(document, section.problems)
    return section


def raise_first_problem(document: Document, problems: list[FieldProblem]) -> None:
    """Raise for the first problem, if there is any.

    Raises:
        InvalidDocumentError: For the first problem, with the place of the document.
    """
    if problems:
        raise InvalidDocumentError(document.where, problems[0])


def check_template(document: Document, template: Section) -> None:
    """Check a pod or a pod template.

    Args:
        template: The object that has `metadata` and `spec`.

    Raises:
        InvalidDocumentError: For the first wrong field.
    """
    metadata = template.section("metadata")
    if metadata is not None:
        metadata.text_map("labels")
    spec = template.section("spec")
    if not template.has("spec"):
        template.refuse("spec", "must be an object with containers")
    if spec is not None:
        _check_spec(spec)
    raise_first_problem(document, template.problems)


def check_limit_range(document: Document) -> None:
    """Check a LimitRange.

    Raises:
        InvalidDocumentError: For the first wrong field.
    """
    spec = required_section(document, "spec")
    for item in spec.sections("limits"):
        for field in ("default", "defaultRequest", "max", "maxLimitRequestRatio", "min"):
            amounts = item.section(field)
            if amounts is not None:
                amounts.resources()
    raise_first_problem(document, spec.problems)


def check_quota(document: Document) -> None:
    """Check a ResourceQuota.

    Raises:
        InvalidDocumentError: For the first wrong field.
    """
    spec = required_section(document, "spec")
    hard = spec.section("hard")
    if hard is not None:
        hard.resources()
    raise_first_problem(document, spec.problems)


def replicas_of(section: Section, field: str, default: int) -> int:
    """Return a number of pods; a wrong or too large number is a problem."""
    found = section.integer(field, 0, MAX_REPLICAS)
    return default if found is None else found


def _check_spec(spec: Section) -> None:
    containers = spec.sections("containers")
    if not containers and not spec.problems:
        spec.refuse("containers", "must be a list of at least one container")
    for container in (*containers, *spec.sections("initContainers")):
        _check_resources(container)
    _check_resources(spec)
    overhead = spec.section("overhead")
    if overhead is not None:
        overhead.resources()
    spec.text("nodeName")
    spec.text("schedulerName")
    spec.text_map("nodeSelector")
    spec.integer("priority", -(2**31), 2**31 - 1)
    for field in ("tolerations", "volumes", "schedulingGates"):
        spec.sections(field)
    _check_spreads(spec)
    _check_affinity(spec)


def _check_spreads(spec: Section) -> None:
    """Check topology spread constraints: the API server would not create a pod with a wrong one.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis/core/validation/validation.go
    (validateTopologySpreadConstraints), 2026-11-29.
    """
    seen: set[tuple[str, str]] = set()
    for spread in spec.sections("topologySpreadConstraints"):
        if not spread.has("maxSkew"):
            spread.refuse("maxSkew", "write a whole number of 1 or more")
        spread.integer("maxSkew", 1)
        spread.integer("minDomains", 1)
        key, policy = spread.text("topologyKey"), spread.text("whenUnsatisfiable")
        if not key:
            spread.refuse("topologyKey", f"write a label of nodes such as {keys.ZONE}")
        if policy not in tuple(SpreadPolicy):
            spread.refuse("whenUnsatisfiable", f"write one of {', '.join(SpreadPolicy)}")
        if (key, policy) in seen:
            remedy = f"another constraint has this key, too, with {policy}: keep one of them"
            spread.refuse("topologyKey", remedy)
        seen.add((key, policy))


def _check_resources(owner: Section) -> None:
    resources = owner.section("resources")
    if resources is None:
        return
    for field in ("requests", "limits"):
        amounts = resources.section(field)
        if amounts is not None:
            amounts.resources()


def _check_affinity(spec: Section) -> None:
    affinity = spec.section("affinity")
    if affinity is None:
        return
    affinity.refuse_unknown(("nodeAffinity", "podAffinity", "podAntiAffinity"))
    for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        one = affinity.section(kind)
        if one is None:
            continue
        one.sections("preferredDuringSchedulingIgnoredDuringExecution")
        if kind == "nodeAffinity":
            one.section("requiredDuringSchedulingIgnoredDuringExecution")
        else:
            one.sections("requiredDuringSchedulingIgnoredDuringExecution")
