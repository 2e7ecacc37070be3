"""Labels, annotations and requirements of the nodes of a NodePool.

Source: https://karpenter.sh/docs/concepts/nodepools/ (2026-11).
"""

from functools import partial
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from shared.manifests.api.node_constraints import (
    KEY,
    NodeRequirement,
    Value,
    allowed_key_rule,
    annotation_schema,
    checked_annotations,
    checked_labels,
    label_schema,
    meant_key,
    refused_by,
    requirement_schema,
)
from shared.manifests.api.parts import AllowedValues, Fault, Int32, Schema, ValidationRule, refuse
from shared.manifests.problems import key_fault
from shared.model import labels as keys
from shared.model.dialect import V1
from shared.model.requirements import Operator

_OF_THE_POOL: Final = "this key belongs to Karpenter or Dovetail; use one of your own domain"
# Labels of instances that Karpenter's v1 knows and the catalog of instance types does not have.
# Source: https://karpenter.sh/docs/concepts/scheduling/#well-known-labels (2026-11).
_NOT_IN_THE_CATALOGUE: Final = frozenset(
    f"karpenter.k8s.aws/{name}"
    for name in (
        "capacity-reservation-id",
        "capacity-reservation-interruptible",
        "capacity-reservation-type",
        "instance-tenancy",
        "nitro-sandbox",
        "placement-group-id",
        "placement-group-partition",
    )
)
_UNANSWERED: Final = (
    "Dovetail does not know this of instance types; remove it, and choose by "
    f"{keys.INSTANCE_FAMILY} or {keys.INSTANCE_TYPE} where it matters"
)
# Other labels that Karpenter's v1 knows: as a user's own labels they would select nothing, and
# would be wrong on nodes.
# Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/apis/v1/labels.go (init),
# 2026-11.
_CHOSEN_OTHERWISE: Final = {
    keys.ZONE_ID: f"Dovetail chooses zones by their names; ask for {keys.ZONE}",
    "node.kubernetes.io/windows-build": "all nodes of Dovetail run Linux; remove it",
}


def pool_label_key_fault(key: str) -> str | None:
    """Return what to change in the key of a label, None when a NodePool may set it."""
    if key in _NOT_IN_THE_CATALOGUE:
        return _UNANSWERED
    if key in _CHOSEN_OTHERWISE:
        return _CHOSEN_OTHERWISE[key]
    restricted = key == keys.INSTANCE_PODS or keys.is_restricted(key, V1.reserved_domains)
    return key_fault(key) or (meant_key(key, _OF_THE_POOL) if restricted else None)


PoolLabels = Annotated[
    dict[str, str],
    AfterValidator(partial(checked_labels, pool_label_key_fault)),
    Field(max_length=100),
    label_schema(_OF_THE_POOL, V1.reserved_domains),
]
PoolAnnotations = Annotated[
    dict[str, str],
    AfterValidator(partial(checked_annotations, keys.DO_NOT_DISRUPT)),
    annotation_schema(keys.DO_NOT_DISRUPT),
]


def _requirement_key_fault(key: str) -> str | None:
    """Return what to change in the key of a requirement, None when a NodePool may have it.

    The only tenancy is `default`: all instances use shared hosts.
    """
    return None if key == keys.INSTANCE_TENANCY else pool_label_key_fault(key)


class PoolRequirement(NodeRequirement):
    """What nodes of a NodePool must answer about one label."""

    key: Annotated[str, refused_by(_requirement_key_fault), KEY] = Field(
        description="A label of nodes, such as kubernetes.io/arch"
    )
    operator: Annotated[str, AllowedValues(*Operator)] = Field(
        description=f"One of {', '.join(Operator)}"
    )
    # Fewer than in Kubernetes: API servers bound the cost of the rules below.
    values: Annotated[list[Value], Schema(maxItems=800)] = Field(default=[], validate_default=True)
    min_values: Int32 | None = Field(default=None, ge=1, le=50)

    @field_validator("min_values")
    @classmethod
    def _are_among_the_values(cls, least: int, info: ValidationInfo) -> int:
        values = info.data.get("values")
        if info.data.get("operator") == Operator.IN and values is not None and len(values) < least:
            refuse([Fault((), least, f"write at most {len(values)}, or give more values")])
        return least


POOL_REQUIREMENT: Final = requirement_schema(
    ValidationRule(
        _OF_THE_POOL,
        f"self.key == '{keys.INSTANCE_TENANCY}' || "
        + allowed_key_rule("self.key", V1.reserved_domains),
    ),
    ValidationRule(
        "In with minValues needs at least that many values",
        """self.operator != 'In' || !has(self.minValues) || !has(self.values)
        || size(self.values) >= self.minValues""",
    ),
    bounds=(Operator.GT, Operator.LT, Operator.GTE, Operator.LTE),
)
