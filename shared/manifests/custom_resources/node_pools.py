"""NodePools: Karpenter's v1 document, checked in full, as the value that a Provisioner is.

A NodePool of another provider's node class, such as EKS Auto Mode's, is none of Dovetail's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from shared.manifests.api import node_pool as api
from shared.manifests.api.aws_node_template import UserDataCheck
from shared.manifests.api.node_constraints import asked_of_nodes, with_defaults
from shared.manifests.api.parts import read
from shared.manifests.custom_resources.brakes import ProvisionerBrakes, is_paused, read_brakes
from shared.manifests.custom_resources.limits import read_limits
from shared.manifests.custom_resources.node_classes import NodeClass, read_named_class
from shared.manifests.custom_resources.preferences import read_preference_policy
from shared.manifests.fields import Raw, integer, mapping, text, text_map
from shared.manifests.problems import FieldProblem, InvalidProvisionerError, Section, value_fault
from shared.model import labels as keys
from shared.model.brakes import Ceiling
from shared.model.dialect import V1
from shared.model.provisioner import Provisioner
from shared.model.quantity import parse_quantity

_NODES: Final = "nodes"


def is_foreign(raw: Raw) -> bool:
    """Return whether a NodePool names a node class of another provider."""
    spec = mapping(mapping(mapping(raw.get("spec")).get("template")).get("spec"))
    group = text(mapping(spec.get("nodeClassRef")).get("group")).partition("/")[0]
    return group not in ("", api.CLASS_GROUP)


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
    document = read(api.NodePool, raw, "", problems)
    metadata = Section(mapping(raw.get("metadata")), "metadata", problems)
    if fault := value_fault(text(metadata.raw.get("name"))):
        metadata.refuse("name", f"becomes a label of each node; {fault}")
    brakes = read_brakes(metadata)
    preferences = read_preference_policy(metadata) or V1.preference_policy
    if document is None:
        raise InvalidProvisionerError(problems)
    named = document.spec.template.spec.node_class_ref.name
    node_class = read_named_class(named, classes, problems, check)
    if problems:
        raise InvalidProvisionerError(problems)
    found = _provisioner(metadata.raw, document.spec, brakes, node_class)
    return replace(found, preference_policy=preferences)


def _provisioner(
    metadata: Raw, spec: api.NodePoolSpec, brakes: ProvisionerBrakes, node_class: NodeClass
) -> Provisioner:
    shape, given = spec.template.spec, spec.template.metadata
    resources = {name: amount for name, amount in spec.limits.items() if name != _NODES}
    limits, warnings = read_limits(resources, "spec.limits")
    consolidates = spec.disruption.consolidation_policy != api.EMPTY
    after = spec.disruption.consolidate_after
    return Provisioner(
        name=text(metadata.get("name")),
        kind=V1.owner_kind,
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        generation=integer(metadata.get("generation")) or 0,
        labels={**given.labels, keys.NODE_CLASS: shape.node_class_ref.name},
        annotations=given.annotations,
        requirements=with_defaults(asked_of_nodes(given.labels, shape.requirements), V1),
        taints=tuple(taint.taint for taint in shape.taints),
        startup_taints=tuple(taint.taint for taint in shape.startup_taints),
        kubelet=node_class.kubelet,
        template=node_class.template,
        ttl_after_empty=None if consolidates else after,
        ttl_until_expired=shape.expire_after,
        limits=limits,
        weight=spec.weight or 0,
        consolidation=consolidates and after is not None,
        warnings=(*warnings, *_not_acted_on(spec)),
        deleting=metadata.get("deletionTimestamp") is not None,
        paused=is_paused(text_map(metadata.get("annotations"))),
        shadow=brakes.shadow,
        ceiling=brakes.ceiling.lower(_ceiling(spec.limits)),
    )


def _ceiling(limits: Raw) -> Ceiling:
    """Return the limit on the number of nodes, of a fraction its whole part."""
    most = limits.get(_NODES)
    return Ceiling(max_nodes=None if most is None else int(parse_quantity(most)))


def _not_acted_on(spec: api.NodePoolSpec) -> Iterator[str]:
    """Yield what of a valid document is read and does nothing."""
    disruption, shape = spec.disruption, spec.template.spec
    if disruption.consolidation_policy == api.BALANCED:
        yield f"spec.disruption.consolidationPolicy: Balanced is read as {api.UNDERUTILIZED}"
    if disruption.consolidation_policy != api.EMPTY and disruption.consolidate_after:
        yield (
            "spec.disruption.consolidateAfter: not acted on yet with this policy: nodes are "
            "consolidated without that wait"
        )
    # API servers write the default into each object.
    if disruption.budgets != [api.Budget()]:
        yield (
            "spec.disruption.budgets: not acted on yet: Dovetail's own budget holds, one change "
            "at a time"
        )
    if shape.termination_grace_period is not None:
        yield (
            "spec.template.spec.terminationGracePeriod: not acted on yet: drains end as those of a "
            "Provisioner"
        )
    for number, requirement in enumerate(shape.requirements):
        if requirement.min_values is not None:
            yield (
                f"spec.template.spec.requirements[{number}].minValues: not acted on yet: options "
                "are chosen by price"
            )
    if keys.DO_NOT_DISRUPT in spec.template.metadata.annotations:
        yield (
            f"spec.template.metadata.annotations.{keys.DO_NOT_DISRUPT}: not acted on yet: nodes "
            "are disrupted all the same"
        )
