"""NodePools: Karpenter's v1 document, fully validated, decoded to a Provisioner.

`read_lifetime` reads the fields about lifetimes, as it does for timers.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from shared.manifests.api import node_pool as api
from shared.manifests.api.aws_node_template import UserDataCheck
from shared.manifests.api.node_constraints import all_requirements, with_defaults
from shared.manifests.api.parts import read_part
from shared.manifests.custom_resources.brakes import read_brakes
from shared.manifests.custom_resources.karpenter_behaviors import check_karpenter_behaviors
from shared.manifests.custom_resources.limits import read_limits
from shared.manifests.custom_resources.node_budgets import unreadable_budgets
from shared.manifests.custom_resources.node_classes import KIND as CLASS_KIND
from shared.manifests.custom_resources.node_classes import read_named_class
from shared.manifests.custom_resources.pool_lifetimes import read_lifetime
from shared.manifests.custom_resources.preferences import read_preference_policy
from shared.manifests.custom_resources.triggers import check_triggers
from shared.manifests.problems import FieldProblem, InvalidProvisionerError, Section, value_fault
from shared.manifests.raw_json import Raw, mapping, text
from shared.model import labels as keys
from shared.model.brakes import Ceiling
from shared.model.dialect import V1
from shared.model.provisioner import Provisioner
from shared.model.quantity import parse_quantity
from shared.model.requirements import Requirement, Requirements
from shared.model.values import replace

_NODES: Final = "nodes"
# The only tenancy of instances: each node has its label, and pods may select it. The validation of
# fields checks that the NodePool allows it.
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
        classes: All EC2NodeClasses, by name; problems of the named class are problems of the
            NodePool.
        check: Check of user data; None for a caller that launches nothing.

    Raises:
        InvalidProvisionerError: If anything in it is wrong; it lists all problems.
    """
    problems: list[FieldProblem] = []
    current, moved = _without_kubelet(raw)
    document = read_part(api.NodePool, current, "", problems)
    metadata = Section(mapping(raw.get("metadata")), "metadata", problems)
    if fault := value_fault(text(metadata.raw.get("name"))):
        metadata.refuse("name", f"becomes a label of each node; {fault}")
    check_karpenter_behaviors(metadata)
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
        requirements=with_defaults(all_requirements(given.labels, shape.requirements), V1).merge(
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
            *unreadable_budgets(lifetime.budgets or (), "spec.disruption.budgets"),
            *_not_acted_on(document.spec),
            *(f"{CLASS_KIND} {named}: {warning}" for warning in node_class.warnings),
        ),
        ceiling=brakes.ceiling.lower(_ceiling(document.spec.limits)),
        preference_policy=preferences,
    )


def _without_kubelet(raw: Raw) -> tuple[Raw, tuple[str, ...]]:
    """Return the NodePool without the kubelet settings of v1beta1, and a warning if it had some.

    API servers drop them silently; files of Karpenter's users still have them.
    """
    template = mapping(mapping(raw.get("spec")).get("template"))
    shape = mapping(template.get("spec"))
    if "kubelet" not in shape:
        return raw, ()
    kept = {key: value for key, value in shape.items() if key != "kubelet"}
    spec = {**mapping(raw.get("spec")), "template": {**template, "spec": kept}}
    return {**raw, "spec": spec}, (_MOVED,)


def _ceiling(limits: Raw) -> Ceiling:
    """Return the limit on the number of nodes, fractions rounded down."""
    most = limits.get(_NODES)
    return Ceiling(max_nodes=None if most is None else int(parse_quantity(most)))


def _least_values(shape: api.NodeClaimTemplateSpec) -> dict[str, int]:
    """Return minValues by key, the larger of two for one key."""
    found: dict[str, int] = {}
    for requirement in shape.requirements:
        if requirement.min_values is not None:
            key = keys.normalize(requirement.key)
            found[key] = max(requirement.min_values, found.get(key, 0))
    return found


def _not_acted_on(spec: api.NodePoolSpec) -> Iterator[str]:
    """Yield a warning for each setting of a valid document that has no effect."""
    if spec.disruption.consolidation_policy == api.BALANCED:
        yield f"spec.disruption.consolidationPolicy: Balanced is read as {api.UNDERUTILIZED}"
