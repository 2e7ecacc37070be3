"""NodePools of Karpenter's v1 API: which nodes may be launched and how long they live.

Source: https://karpenter.sh/docs/concepts/nodepools/ and .../disruption/ (2026-11).
"""

from datetime import timedelta
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from shared.manifests.api.budgets import BUDGET, Budget
from shared.manifests.api.node_constraints import (
    NodeTaint,
    NodeTaints,
    all_requirements,
    contradictions,
    refused_by,
    repeated_taints,
)
from shared.manifests.api.parts import (
    QUANTITY,
    AllowedValues,
    CustomResource,
    CustomResourceDefinition,
    Fault,
    Int32,
    Part,
    PrinterColumn,
    Schema,
    ValidationRule,
    checked_quantities,
    refuse,
)
from shared.manifests.api.pool_constraints import (
    POOL_REQUIREMENT,
    PoolAnnotations,
    PoolLabels,
    PoolRequirement,
)
from shared.manifests.api.spans import Span, SpanOrNever
from shared.manifests.api.status import status_conditions
from shared.manifests.problems import value_fault
from shared.model.dialect import V1, WHEN_EMPTY

UNDERUTILIZED: Final = "WhenEmptyOrUnderutilized"
BALANCED: Final = "Balanced"


class Disruption(Part):
    """When nodes are removed or replaced to save money, and how many at once."""

    advice: ClassVar = {"expireAfter": "move it to spec.template.spec.expireAfter"}
    consolidation_policy: Annotated[str, AllowedValues(WHEN_EMPTY, UNDERUTILIZED, BALANCED)] = (
        UNDERUTILIZED if V1.consolidates else WHEN_EMPTY
    )
    consolidate_after: SpanOrNever = timedelta(0)
    budgets: Annotated[list[Annotated[Budget, BUDGET]], Field(max_length=50)] = Field(
        default=[Budget()], description="How many nodes may be disrupted at once; [] for any number"
    )


# A NodePool may name the node class of another provider; Dovetail ignores such a NodePool.
_ANY_NAME: Final = WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 253})


class NodeClassRef(Part):
    """Names an EC2NodeClass."""

    advice: ClassVar = {"apiVersion": f"write group: {V1.template_group} instead"}
    group: Annotated[str, AllowedValues(V1.template_group), _ANY_NAME] = Field(
        description=f"The group of the EC2NodeClass, {V1.template_group}"
    )
    kind: Annotated[str, AllowedValues(V1.template_kind), _ANY_NAME] = Field(
        description=f"The kind {V1.template_kind}"
    )
    name: Annotated[str, Field(min_length=1), refused_by(value_fault), Schema(maxLength=253)] = (
        Field(description="The name of an EC2NodeClass")
    )


class NodePoolMetadata(Part):
    """Labels and annotations of each node."""

    labels: PoolLabels = Field(default={})
    annotations: PoolAnnotations = Field(default={})


class NodeClaimTemplateSpec(Part):
    """What nodes may look like and how long they live."""

    node_class_ref: NodeClassRef = Field(description="The group, kind and name of an EC2NodeClass")
    taints: NodeTaints = Field(
        default=[], description="Taints of each node, to be tolerated by its pods"
    )
    startup_taints: NodeTaints = Field(
        default=[],
        description="Taints of each new node that another component removes; not to be tolerated",
    )
    requirements: Annotated[
        list[Annotated[PoolRequirement, POOL_REQUIREMENT]], Field(max_length=100)
    ] = Field(description="A list of requirements; [] allows each instance type")
    expire_after: SpanOrNever = Field(
        default=V1.expires_after,
        description="A node is replaced this long after it was made; 720h when absent, or Never",
    )
    termination_grace_period: Span | None = None

    @field_validator("taints", "startup_taints")
    @classmethod
    def _taints_are_different(cls, found: list[NodeTaint], info: ValidationInfo) -> list[NodeTaint]:
        refuse(repeated_taints(info.data.get("taints", ()), found))
        return found


class NodeClaimTemplate(Part):
    """The template of nodes."""

    advice: ClassVar = {"disruption": "move it to spec.disruption"}
    metadata: NodePoolMetadata = Field(default_factory=NodePoolMetadata)
    spec: NodeClaimTemplateSpec = Field(description="What nodes may look like, with nodeClassRef")

    @model_validator(mode="after")
    def _nodes_can_meet_it(self) -> Self:
        faults = contradictions(all_requirements(self.metadata.labels, self.spec.requirements))
        refuse(
            Fault(("spec", "requirements", *fault.loc), fault.value, fault.remedy)
            for fault in faults
        )
        return self


_OF_THE_TEMPLATE: Final = {
    name: f"move it to spec.template.spec.{name}"
    for name in ("nodeClassRef", "requirements", "startupTaints", "taints", "expireAfter")
} | {name: f"move it to spec.template.metadata.{name}" for name in ("annotations", "labels")}


class NodePoolSpec(Part):
    """What nodes may look like, how many there may be, and when they are disrupted."""

    advice: ClassVar = {
        **_OF_THE_TEMPLATE,
        "replicas": "remove it: a fixed number of nodes is not kept; use a managed node group, or "
        "a Deployment of placeholder pods with that many replicas",
    }
    refused: ClassVar = {"replicas": "integer"}
    template: NodeClaimTemplate = Field(description="The template of nodes")
    disruption: Disruption = Field(default_factory=Disruption)
    limits: Annotated[
        dict[str, Any],
        AfterValidator(checked_quantities),
        Schema(maxProperties=50, additionalProperties=QUANTITY),
    ] = Field(
        default={}, description="Ceiling on what its nodes have together, and on their number"
    )
    weight: Int32 | None = Field(
        default=None, ge=1, le=100, description="The highest is tried first; 0 when absent"
    )


_STATUS: Final = {
    "type": "object",
    "properties": {
        "resources": {
            "description": "What its nodes have together",
            "type": "object",
            "additionalProperties": QUANTITY,
        },
        "nodes": {
            "description": "How many nodes it has",
            "type": "integer",
            "format": "int64",
        },
        "nodeClassObservedGeneration": {"type": "integer", "format": "int64"},
        "conditions": status_conditions(observedGeneration={"type": "integer", "format": "int64"}),
    },
}


class NodePool(CustomResource):
    """What nodes may look like, how many there may be, and when they are disrupted."""

    definition: ClassVar[CustomResourceDefinition] = CustomResourceDefinition(
        file="node_pools/node_pools.yaml",
        api_version=V1.owner_version,
        kind=V1.owner_kind.value,
        plural="nodepools",
        description="What nodes may look like and how long they live",
        rules=(
            ValidationRule(
                "the name becomes a label of each node, so it has at most 63 characters",
                "size(self.metadata.name) <= 63",
            ),
        ),
        columns=(
            PrinterColumn(
                name="NodeClass", type="string", path=".spec.template.spec.nodeClassRef.name"
            ),
            PrinterColumn(name="Nodes", type="string", path=".status.nodes"),
            PrinterColumn(
                name="Ready",
                type="string",
                path='.status.conditions[?(@.type=="Ready")].status',
                description="Whether Dovetail launches nodes for it; the condition's message says "
                "why not",
            ),
            PrinterColumn(name="Weight", type="integer", path=".spec.weight", wide=True),
            PrinterColumn(name="CPU", type="string", path=".status.resources.cpu", wide=True),
            PrinterColumn(name="Memory", type="string", path=".status.resources.memory", wide=True),
        ),
    )
    api_version: Annotated[str, AllowedValues(definition.api_version)] = definition.api_version
    kind: Annotated[str, AllowedValues(definition.kind)] = definition.kind
    metadata: dict[str, Any] = Field(default={})
    spec: NodePoolSpec = Field(description="What nodes may look like, under spec")
    status: Annotated[Any, WithJsonSchema(_STATUS)] = None
