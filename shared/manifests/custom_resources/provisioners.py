"""Provisioners: Karpenter's v1alpha5 document, fully validated.

The CRD's schema catches most mistakes when a manifest is applied; this catches the rest, and
manifests that were stored before.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.manifests.api.aws_node_template import UserDataCheck
from shared.manifests.api.node_constraints import all_requirements, with_defaults
from shared.manifests.api.parts import read_part
from shared.manifests.api.provisioner import ProvisionerManifest
from shared.manifests.custom_resources.annotated_budgets import check_annotated_budgets
from shared.manifests.custom_resources.brakes import read_brakes
from shared.manifests.custom_resources.limits import read_limits
from shared.manifests.custom_resources.node_budgets import unreadable_budgets
from shared.manifests.custom_resources.node_templates import (
    NO_TEMPLATES,
    by_name,
    read_named_template,
    template_at_fault,
)
from shared.manifests.custom_resources.pool_lifetimes import read_provisioner_lifetime
from shared.manifests.custom_resources.preferences import read_preference_policy
from shared.manifests.custom_resources.triggers import check_triggers
from shared.manifests.problems import FieldProblem, InvalidProvisionerError, Section, value_fault
from shared.manifests.raw_json import Raw, mapping, text
from shared.model import labels as keys
from shared.model.dialect import V1ALPHA5, OwnerKind
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.values import replace

_BUDGETS: Final = f"metadata.annotations.{keys.DISRUPTION_BUDGETS}"


def decode_provisioner(
    raw: Raw, templates: Mapping[str, Raw] = NO_TEMPLATES, *, check: UserDataCheck | None = None
) -> Provisioner:
    """Return the Provisioner, its labels, requirements and defaults merged.

    Args:
        templates: All AWSNodeTemplates, by name.
        check: Check of user data; None for a caller that launches nothing.

    Raises:
        InvalidProvisionerError: If anything in it is wrong; it lists all problems.
    """
    problems: list[FieldProblem] = []
    document = read_part(ProvisionerManifest, raw, "", problems, check)
    metadata = Section(mapping(raw.get("metadata")), "metadata", problems)
    if fault := value_fault(text(metadata.raw.get("name"))):
        metadata.refuse("name", f"becomes a label of each node; {fault}")
    brakes = read_brakes(metadata)
    check_triggers(metadata)
    check_annotated_budgets(metadata)
    preferences = read_preference_policy(metadata)
    template = read_named_template(raw, templates, problems, check)
    if document is None or problems:
        raise InvalidProvisionerError(problems)
    lifetime, spec = read_provisioner_lifetime(raw), document.spec
    template = template or spec.provider.node_template()
    kubelet = spec.kubelet_configuration.configuration
    limits, warnings = read_limits(spec.limits.resources, "spec.limits.resources")
    left_out = kubelet.left_out(template.ami_family)
    return replace(
        lifetime,
        labels=spec.labels,
        annotations=spec.annotations,
        requirements=with_defaults(all_requirements(spec.labels, spec.requirements), V1ALPHA5),
        kubelet=kubelet,
        template=template,
        limits=limits,
        weight=spec.weight or 0,
        warnings=(
            *warnings,
            *unreadable_budgets(lifetime.budgets or (), _BUDGETS),
            *(f"spec.kubeletConfiguration.{line}" for line in left_out),
        ),
        ceiling=brakes.ceiling,
        preference_policy=preferences,
    )


def decode_provisioners(
    raws: Iterable[Raw], templates: Iterable[Raw] = (), *, check: UserDataCheck | None = None
) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
    """Return the usable Provisioners and those that cannot be used, each sorted by name.

    Args:
        templates: All AWSNodeTemplates.
        check: Check of user data; None for a caller that launches nothing.
    """
    named = by_name(templates)
    usable: list[Provisioner] = []
    refused: list[InvalidProvisioner] = []
    for raw in raws:
        try:
            usable.append(decode_provisioner(raw, named, check=check))
        except InvalidProvisionerError as error:
            at_fault = template_at_fault(raw, error.problems)
            refused.append(unusable(raw, error, V1ALPHA5.owner_kind, at_fault))
    return (
        tuple(sorted(usable, key=lambda entry: entry.name)),
        tuple(sorted(refused, key=lambda entry: entry.name)),
    )


def unusable(
    raw: Raw, error: InvalidProvisionerError, kind: OwnerKind, template: str
) -> InvalidProvisioner:
    """Return the InvalidProvisioner for a document that cannot be used.

    Args:
        template: The template it names, if something is wrong there.
    """
    metadata = mapping(raw.get("metadata"))
    return InvalidProvisioner(
        kind=kind,
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        reasons=tuple(problem.public for problem in error.problems),
        template=template,
    )
