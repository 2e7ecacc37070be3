"""NodePools: Karpenter's v1 document, checked in full, as the value that a Provisioner is.

How long its nodes live is read as timers read it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from shared.manifests.api import node_pool as api
from shared.manifests.api.aws_node_template import UserDataCheck
from shared.manifests.api.node_constraints import asked_of_nodes, with_defaults
from shared.manifests.api.parts import read
from shared.manifests.custom_resources.brakes import read_brakes
from shared.manifests.custom_resources.karpenter_ways import check_ways
from shared.manifests.custom_resources.limits import read_limits
from shared.manifests.custom_resources.node_budgets import unread
from shared.manifests.custom_resources.node_classes import KIND as CLASS_KIND
from shared.manifests.custom_resources.node_classes import read_named_class
from shared.manifests.custom_resources.pool_lifetimes import read_lifetime
from shared.manifests.custom_resources.preferences import read_preference_policy
from shared.manifests.custom_resources.triggers import check_triggers
from shared.manifests.fields import Raw, mapping, text
from shared.manifests.problems import FieldProblem, InvalidProvisionerError, Section, value_fault
from shared.model import labels as keys
from shared.model.brakes import Ceiling
from shared.model.dialect import V1
from shared.model.provisioner import Provisioner
from shared.model.quantity import parse_quantity
from shared.model.requirements import Requirement, Requirements

_NODES: Final = "nodes"
# Of tenancies the one that machines have: so each node has its label, and pods may select it. That
# it is among those that are asked for is checked with the fields.
# Source: `getTenancyType` of
# https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instance/instance.go
# (2026-11-27): default where it is allowed, dedicated where only that is.
_TENANCY: Final = Requirements.of([Requirement.of(keys.INSTANCE_TENANCY, "default")])
_MOVED: Final = (
    "spec.template.spec.kubelet: dropped, as by Karpenter: since v1 a NodePool has none; move it "
    "to spec.kubelet of the EC2NodeClass"
)


def decode_node_pool(
    raw: Raw, classes: Mapping[str, Raw], *, check: UserDataCheck | None = None
) -> Provisioner:
    """Return the NodePool as a Provisioner, its class, labels and requirements merged.

    Args:
        classes: The EC2NodeClasses there are, by name; problems of the one that is named are
            problems of the NodePool.
        check: Of user data; None for a caller that launches nothing from it.

    Raises:
        InvalidProvisionerError: If anything in it is wrong; it lists everything that is.
    """
    problems: list[FieldProblem] = []
    current, moved = _without_kubelet(raw)
    document = read(api.NodePool, current, "", problems)
    metadata = Section(mapping(raw.get("metadata")), "metadata", problems)
    if fault := value_fault(text(metadata.raw.get("name"))):
        metadata.refuse("name", f"becomes a label of each node; {fault}")
    check_ways(metadata)
    check_triggers(metadata)
    brakes = read_brakes(metadata)
    preferences = read_preference_policy(metadata) or V1.preference_policy
    if document is None:
        raise InvalidProvisionerError(problems)
    named = document.spec.template.spec.node_class_ref.name
    node_class = read_named_class(named, classes, problems, check)
    if problems:
        raise InvalidProvisionerError(problems)
    shape, given = document.spec.template.spec, document.spec.template.metadata
    amounts = {name: amount for name, amount in document.spec.limits.items() if name != _NODES}
    limits, warnings = read_limits(amounts, "spec.limits")
    lifetime = read_lifetime(raw)
    return replace(
        lifetime,
        labels={**given.labels, keys.NODE_CLASS: named},
        annotations=given.annotations,
        requirements=with_defaults(asked_of_nodes(given.labels, shape.requirements), V1).merge(
            _TENANCY
        ),
        kubelet=node_class.kubelet,
        template=node_class.template,
        limits=limits,
        weight=document.spec.weight or 0,
        least_values=_least_values(shape),
        warnings=(
            *warnings,
            *moved,
            *unread(lifetime.budgets or (), "spec.disruption.budgets"),
            *_not_acted_on(document.spec),
            *(f"{CLASS_KIND} {named}: {warning}" for warning in node_class.warnings),
        ),
        ceiling=brakes.ceiling.lower(_ceiling(document.spec.limits)),
        preference_policy=preferences,
    )


def _without_kubelet(raw: Raw) -> tuple[Raw, tuple[str, ...]]:
    """Return the NodePool without the kubelet settings of v1beta1, and a warning where it had some.

    API servers drop them without a word: files of Karpenter's users still have them.
    """
    template = mapping(mapping(raw.get("spec")).get("template"))
    shape = mapping(template.get("spec"))
    if "kubelet" not in shape:
        return raw, ()
    kept = {key: value for key, value in shape.items() if key != "kubelet"}
    spec = {**mapping(raw.get("spec")), "template": {**template, "spec": kept}}
    return {**raw, "spec": spec}, (_MOVED,)


def _ceiling(limits: Raw) -> Ceiling:
    """Return the limit on the number of nodes, of a fraction its whole part."""
    most = limits.get(_NODES)
    return Ceiling(max_nodes=None if most is None else int(parse_quantity(most)))


def _least_values(shape: api.NodeSpec) -> dict[str, int]:
    """Return minValues by key; of two on one key the larger."""
    found: dict[str, int] = {}
    for requirement in shape.requirements:
        if requirement.min_values is not None:
            key = keys.normalize(requirement.key)
            found[key] = max(requirement.min_values, found.get(key, 0))
    return found


def _not_acted_on(spec: api.NodePoolSpec) -> Iterator[str]:
    """Yield what of a valid document is read and does nothing."""
    if spec.disruption.consolidation_policy == api.BALANCED:
        yield f"spec.disruption.consolidationPolicy: Balanced is read as {api.UNDERUTILIZED}"
