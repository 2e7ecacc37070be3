"""Provisioners: Karpenter's v1alpha5 document, checked in full.

The CRD's schema catches most mistakes when a manifest is applied; this catches the rest, and the
manifests that were stored before.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from shared.manifests.custom_resources.brakes import read_brakes
from shared.manifests.custom_resources.kubelet_configuration import read_kubelet
from shared.manifests.custom_resources.node_constraints import (
    read_annotations,
    read_labels,
    read_requirements,
    read_taints,
)
from shared.manifests.custom_resources.node_templates import (
    NO_TEMPLATES,
    by_name,
    read_how_machines_are_made,
    template_at_fault,
)
from shared.manifests.fields import Raw, integer, mapping, text, text_map
from shared.manifests.problems import FieldProblem, InvalidProvisionerError, Section, value_fault
from shared.model import labels as keys
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import InvalidProvisioner

API_VERSION: Final = "karpenter.sh/v1alpha5"
KIND: Final = "Provisioner"
_DOCUMENT_FIELDS: Final = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS: Final = (
    "annotations",
    "consolidation",
    "kubeletConfiguration",
    "labels",
    "limits",
    "provider",
    "providerRef",
    "requirements",
    "startupTaints",
    "taints",
    "ttlSecondsAfterEmpty",
    "ttlSecondsUntilExpired",
    "weight",
)
_DOCUMENT_HINTS: Final = {key: f"move it under spec: spec.{key}" for key in _SPEC_FIELDS}
_NATIVE_RESOURCES: Final = ("cpu", "ephemeral-storage", "memory", "pods")
# Longest span a timer can be given; beyond it, leaving the field out says the same.
_MAX_SECONDS: Final = 100 * 365 * 24 * 3600


def decode_provisioner(raw: Raw, templates: Mapping[str, Raw] = NO_TEMPLATES) -> Provisioner:
    """Return the Provisioner, its labels, requirements and defaults merged.

    Args:
        templates: The AWSNodeTemplates there are, by name.

    Raises:
        InvalidProvisionerError: If anything in it is wrong; it lists everything that is.
    """
    problems: list[FieldProblem] = []
    document = Section(raw, "", problems)
    document.refuse_unknown(_DOCUMENT_FIELDS, _DOCUMENT_HINTS)
    document.text("apiVersion", choices=(API_VERSION,))
    document.text("kind", choices=(KIND,))
    spec = document.section("spec") or Section({}, "spec", problems)
    spec.refuse_unknown(_SPEC_FIELDS)
    provisioner = _provisioner(
        document.section("metadata") or Section({}, "metadata", problems), spec, templates
    )
    if problems:
        raise InvalidProvisionerError(problems)
    return provisioner


def decode_provisioners(
    raws: Iterable[Raw], templates: Iterable[Raw] = ()
) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
    """Return the usable Provisioners and those that cannot be used, each sorted by name.

    Args:
        templates: The AWSNodeTemplates there are.
    """
    named = by_name(templates)
    usable: list[Provisioner] = []
    unusable: list[InvalidProvisioner] = []
    for raw in raws:
        try:
            usable.append(decode_provisioner(raw, named))
        except InvalidProvisionerError as error:
            metadata = mapping(raw.get("metadata"))
            unusable.append(
                InvalidProvisioner(
                    name=text(metadata.get("name")),
                    uid=text(metadata.get("uid")),
                    resource_version=text(metadata.get("resourceVersion")),
                    reasons=tuple(problem.public for problem in error.problems),
                    template=template_at_fault(raw, error.problems),
                )
            )
    return (
        tuple(sorted(usable, key=lambda entry: entry.name)),
        tuple(sorted(unusable, key=lambda entry: entry.name)),
    )


def is_paused(annotations: Raw) -> bool:
    """Return whether the pause annotation stands; any value but `false` pauses."""
    value = annotations.get(keys.PAUSED)
    return value is not None and str(value).lower() != "false"


def _provisioner(described: Section, spec: Section, templates: Mapping[str, Raw]) -> Provisioner:
    metadata = described.raw
    name = text(metadata.get("name"))
    if value_fault(name):
        described.refuse("name", f"becomes a label of each node; {value_fault(name)}")
    brakes = read_brakes(described)
    warnings: list[str] = []
    labels = read_labels(spec)
    taints, startup_taints = read_taints(spec)
    ttl_after_empty = spec.integer("ttlSecondsAfterEmpty", 0, _MAX_SECONDS)
    consolidation = _consolidation(spec)
    if consolidation and ttl_after_empty is not None:
        spec.refuse("ttlSecondsAfterEmpty", "remove it, or set consolidation.enabled to false")
    return Provisioner(
        name=name,
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        generation=integer(metadata.get("generation")) or 0,
        labels=labels,
        annotations=read_annotations(spec),
        requirements=read_requirements(spec, labels),
        taints=taints,
        startup_taints=startup_taints,
        kubelet=read_kubelet(spec),
        template=read_how_machines_are_made(spec, templates),
        ttl_after_empty=_span(ttl_after_empty),
        ttl_until_expired=_span(spec.integer("ttlSecondsUntilExpired", 0, _MAX_SECONDS)),
        limits=_limits(spec, warnings),
        weight=spec.integer("weight", 1, 100) or 0,
        consolidation=consolidation,
        warnings=tuple(warnings),
        deleting=metadata.get("deletionTimestamp") is not None,
        paused=is_paused(text_map(metadata.get("annotations"))),
        shadow=brakes.shadow,
        ceiling=brakes.ceiling,
    )


def _consolidation(spec: Section) -> bool:
    section = spec.section("consolidation")
    if section is None:
        return False
    section.refuse_unknown(("enabled",))
    return section.flag("enabled") is True


def _limits(spec: Section, warnings: list[str]) -> Resources | None:
    """Return the limits; one on a resource that no machine has is left out with a warning."""
    section = spec.section("limits")
    if section is None:
        return None
    section.refuse_unknown(
        ("resources",), dict.fromkeys(_NATIVE_RESOURCES, "move it under limits.resources")
    )
    named = section.section("resources")
    if named is None or not named.raw:
        return None
    ceilings = named.ceilings()
    unknown = [name for name in ceilings if not _is_resource(name)]
    warnings.extend(
        f"{named.at(name)}: {named.raw[name]!r}: no machine has a resource of that name, so this "
        "limit never acts; write its full name, such as nvidia.com/gpu, or one of "
        f"{', '.join(_NATIVE_RESOURCES)}"
        for name in unknown
    )
    return Resources(tuple(item for item in ceilings.items if item[0] not in unknown)) or None


def _is_resource(name: str) -> bool:
    return name in _NATIVE_RESOURCES or "/" in name or name.startswith("hugepages-")


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
