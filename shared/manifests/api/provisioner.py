"""Provisioners of Karpenter's v1alpha5 API.

Source: https://karpenter.sh/v0.31/concepts/provisioners/ (2023-09).
"""

from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from shared.manifests.api.aws_node_template import (
    NODE_TEMPLATE_SCHEMA,
    AWSNodeTemplate,
    AWSNodeTemplateSpec,
)
from shared.manifests.api.kubelet_configuration import KUBELET, Kubelet
from shared.manifests.api.node_constraints import (
    Annotations,
    Labels,
    NodeRequirement,
    NodeRequirements,
    NodeTaint,
    NodeTaints,
    all_requirements,
    contradictions,
    repeated_taints,
)
from shared.manifests.api.parts import (
    QUANTITY,
    AllowedValues,
    CustomResource,
    CustomResourceDefinition,
    Fault,
    Int32,
    Int64,
    Part,
    PrinterColumn,
    Schema,
    ValidationRule,
    checked_quantities,
    refuse,
)
from shared.manifests.api.status import DATE_TIME, TEXT, status_conditions
from shared.model.provisioner import API_VERSION, KIND

# The longest span of a timer; a longer one is the same as none.
_MAX_SECONDS: Final = 100 * 365 * 24 * 3600
NATIVE_RESOURCES: Final = ("cpu", "ephemeral-storage", "memory", "pods")


class LimitsSpec(Part):
    """Ceiling on what its nodes have together."""

    advice: ClassVar = dict.fromkeys(NATIVE_RESOURCES, "move it under limits.resources")
    resources: Annotated[
        dict[str, Any],
        AfterValidator(checked_quantities),
        Schema(maxProperties=50, additionalProperties=QUANTITY),
    ] = Field(default={})


class ConsolidationSpec(Part):
    """Whether nodes are replaced or removed to save money."""

    enabled: bool = Field(
        default=False, description="Whether nodes are replaced or removed to save money"
    )


class ProvisionerKubelet(Kubelet):
    """What is set on the kubelet of each node; its container runtime can only be containerd."""

    container_runtime: Annotated[str, AllowedValues("containerd")] = ""


class Provider(AWSNodeTemplateSpec):
    """What an AWSNodeTemplate says, as a block of the Provisioner."""

    api_version: Annotated[str, AllowedValues("extensions.karpenter.sh/v1alpha1")] = ""
    kind: Annotated[str, AllowedValues("AWS")] = ""


class ProviderRef(Part):
    """Names an AWSNodeTemplate."""

    api_version: Annotated[str, AllowedValues(AWSNodeTemplate.definition.api_version)] = ""
    kind: Annotated[str, AllowedValues(AWSNodeTemplate.definition.kind)] = ""
    name: Annotated[str, Schema(minLength=1, maxLength=253)] = Field(
        description="The name of an AWSNodeTemplate"
    )


class ProvisionerSpec(Part):
    """What nodes may look like and how long they live."""

    annotations: Annotations = Field(default={}, description="Annotations of each node")
    labels: Labels = Field(
        default={}, description="Labels of each node; they also count as requirements"
    )
    taints: NodeTaints = Field(
        default=[], description="Taints of each node, to be tolerated by its pods"
    )
    startup_taints: NodeTaints = Field(
        default=[],
        description="Taints of each new node that another component removes; not to be tolerated",
    )
    requirements: NodeRequirements = Field(
        default=[],
        validate_default=True,
        description="What nodes may look like, over labels of nodes",
    )
    kubelet_configuration: Annotated[ProvisionerKubelet, KUBELET] = Field(
        default_factory=ProvisionerKubelet, description="What is set on the kubelet of each node"
    )
    provider_ref: ProviderRef | None = Field(default=None, description="Names an AWSNodeTemplate")
    provider: Annotated[Provider, NODE_TEMPLATE_SCHEMA] = Field(
        default_factory=Provider, description="How instances are launched"
    )
    consolidation: ConsolidationSpec = Field(default_factory=ConsolidationSpec)
    ttl_seconds_after_empty: Int64 | None = Field(
        default=None,
        ge=0,
        le=_MAX_SECONDS,
        description="A node is removed this long after its last pod; never when absent",
    )
    ttl_seconds_until_expired: Int64 | None = Field(
        default=None,
        ge=0,
        le=_MAX_SECONDS,
        description="A node is replaced this long after it was made; never when absent",
    )
    limits: LimitsSpec = Field(
        default_factory=LimitsSpec, description="Ceiling on what its nodes have together"
    )
    weight: Int32 | None = Field(
        default=None, ge=1, le=100, description="The highest is tried first; 0 when absent"
    )

    @field_validator("taints", "startup_taints")
    @classmethod
    def _taints_are_different(cls, found: list[NodeTaint], info: ValidationInfo) -> list[NodeTaint]:
        refuse(repeated_taints(info.data.get("taints", ()), found))
        return found

    @field_validator("requirements")
    @classmethod
    def _nodes_can_meet_them(
        cls, found: list[NodeRequirement], info: ValidationInfo
    ) -> list[NodeRequirement]:
        refuse(contradictions(all_requirements(info.data.get("labels", {}), found)))
        return found

    @field_validator("provider")
    @classmethod
    def _not_with_a_reference(cls, found: Provider, info: ValidationInfo) -> Provider:
        if info.data.get("provider_ref") is not None:
            # Only the names of its fields: user data may hold secrets.
            names = sorted(found.model_dump(by_alias=True, exclude_unset=True))
            remedy = "remove it or providerRef: one of them says how instances are launched"
            refuse([Fault((), names, remedy)])
        return found

    @field_validator("ttl_seconds_after_empty")
    @classmethod
    def _not_with_consolidation(cls, found: int, info: ValidationInfo) -> int:
        consolidation = info.data.get("consolidation")
        if consolidation is not None and consolidation.enabled:
            refuse([Fault((), found, "remove it, or set consolidation.enabled to false")])
        return found


_SPEC: Final = Schema(
    ValidationRule(
        "give either provider or providerRef", "!has(self.provider) || !has(self.providerRef)"
    ),
    ValidationRule(
        "ttlSecondsAfterEmpty and consolidation exclude each other; remove one",
        """!has(self.ttlSecondsAfterEmpty) || !has(self.consolidation)
        || !has(self.consolidation.enabled) || !self.consolidation.enabled""",
    ),
    ValidationRule(
        "a taint is both in taints and in startupTaints; remove one",
        """!has(self.taints) || !has(self.startupTaints)
        || self.taints.all(taint, !self.startupTaints.exists(other,
        other.key == taint.key && other.effect == taint.effect))""",
    ),
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
        "dollarsPerHour": {"description": "What its nodes cost", **TEXT},
        "lastScaleTime": DATE_TIME,
        "conditions": status_conditions(
            severity=TEXT, observedGeneration={"type": "integer", "format": "int64"}
        ),
    },
}


class ProvisionerManifest(CustomResource):
    """What nodes may look like and how long they live."""

    definition: ClassVar[CustomResourceDefinition] = CustomResourceDefinition(
        file="provisioners.yaml",
        api_version=API_VERSION,
        kind=KIND,
        plural="provisioners",
        description="What nodes may look like and how long they live",
        rules=(
            ValidationRule(
                "the name becomes a label of each node, so it has at most 63 characters",
                "size(self.metadata.name) <= 63",
            ),
        ),
        columns=(
            PrinterColumn(
                name="Ready",
                type="string",
                path='.status.conditions[?(@.type=="Active")].status',
                description="Whether Dovetail acts on it; the condition's message says why not",
            ),
            PrinterColumn(
                name="Reason",
                type="string",
                path='.status.conditions[?(@.type=="Active")].reason',
                description="Why it is so, in a word; Paused where a pause holds it",
            ),
            PrinterColumn(name="Nodes", type="string", path=".status.nodes"),
            PrinterColumn(name="CPU", type="string", path=".status.resources.cpu"),
            PrinterColumn(name="Memory", type="string", path=".status.resources.memory"),
            PrinterColumn(name="$/h", type="string", path=".status.dollarsPerHour"),
            PrinterColumn(name="Weight", type="integer", path=".spec.weight", wide=True),
        ),
    )
    api_version: Annotated[str, AllowedValues(definition.api_version)] = definition.api_version
    kind: Annotated[str, AllowedValues(definition.kind)] = definition.kind
    metadata: dict[str, Any] = Field(default={})
    spec: Annotated[ProvisionerSpec, _SPEC] = Field(default_factory=ProvisionerSpec)
    status: Annotated[Any, WithJsonSchema(_STATUS)] = None
