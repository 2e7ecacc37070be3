"""NodePools of Karpenter's v1 API: what nodes may look like and how long they live.

Source: https://karpenter.sh/docs/concepts/nodepools/ and .../disruption/ (2026-11).
"""

import re
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from shared.manifests.api.node_constraints import (
    NodeTaint,
    asked_of_nodes,
    contradictions,
    refused_by,
    repeated_taints,
)
from shared.manifests.api.parts import (
    Choice,
    CustomResource,
    Definition,
    Fault,
    Part,
    Whole32,
    quantities,
    refuse,
)
from shared.manifests.api.pool_constraints import PoolAnnotations, PoolLabels, PoolRequirement
from shared.manifests.api.spans import Span, SpanOrNever
from shared.manifests.problems import value_fault
from shared.model.dialect import V1

CLASS_GROUP: Final = V1.template_version.partition("/")[0]
EMPTY: Final = "WhenEmpty"
UNDERUTILIZED: Final = "WhenEmptyOrUnderutilized"
BALANCED: Final = "Balanced"
_NODES: Final = re.compile(r"((100|\d{1,2})%|\d{1,9})\Z", re.ASCII)
_SCHEDULE: Final = re.compile(
    r"(@(annually|yearly|monthly|weekly|daily|midnight|hourly)"
    r"|[-0-9A-Za-z*/,]+(\s+[-0-9A-Za-z*/,?#]+){4})\Z",
    re.ASCII,
)
_DURATION: Final = re.compile(r"(\d{1,6}h(\d{1,6}m)?|\d{1,6}m)(0s)?\Z", re.ASCII)


def _nodes(value: str) -> str:
    if not _NODES.match(value):
        refuse([Fault((), value, "write a number of nodes, or a share from 0% to 100%, in quotes")])
    return value


def _schedule(value: str) -> str:
    if not _SCHEDULE.match(value):
        refuse([Fault((), value, "write five fields of cron in UTC, such as 0 9 * * mon-fri")])
    return value


def _duration(value: str) -> str:
    if not _DURATION.match(value):
        refuse([Fault((), value, "write hours and minutes, such as 8h or 1h30m")])
    return value


class Budget(Part):
    """How many nodes may be disrupted at once."""

    nodes: Annotated[str, AfterValidator(_nodes)] = "10%"
    schedule: Annotated[str, AfterValidator(_schedule)] | None = None
    duration: Annotated[str, AfterValidator(_duration)] | None = None
    reasons: list[Annotated[str, Choice("Underutilized", "Empty", "Drifted")]] = Field(default=[])

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        for name, value, other, needed in (
            ("schedule", self.schedule, "duration", self.duration),
            ("duration", self.duration, "schedule", self.schedule),
        ):
            if value is not None and needed is None:
                refuse([Fault((name,), value, f"write {other}, too: each needs the other")])
        return self


class Disruption(Part):
    """When nodes are removed or replaced to save money, and how many at once."""

    advice: ClassVar = {"expireAfter": "move it to spec.template.spec.expireAfter"}
    consolidation_policy: Annotated[str, Choice(EMPTY, UNDERUTILIZED, BALANCED)] = (
        UNDERUTILIZED if V1.consolidates else EMPTY
    )
    consolidate_after: SpanOrNever = timedelta(0)
    budgets: Annotated[list[Budget], Field(max_length=50)] = Field(default=[Budget()])


class NodeClassRef(Part):
    """Names an EC2NodeClass."""

    advice: ClassVar = {"apiVersion": f"write group: {CLASS_GROUP} instead"}
    group: Annotated[str, Choice(CLASS_GROUP)] = Field(
        description=f"The group of the EC2NodeClass, {CLASS_GROUP}"
    )
    kind: Annotated[str, Choice(V1.template_kind)] = Field(
        description=f"The kind {V1.template_kind}"
    )
    name: Annotated[str, Field(min_length=1), refused_by(value_fault)] = Field(
        description="The name of an EC2NodeClass"
    )


class NodePoolMetadata(Part):
    """Labels and annotations of each node."""

    labels: PoolLabels = Field(default={})
    annotations: PoolAnnotations = Field(default={})


class NodeSpec(Part):
    """What nodes may look like and how long they live."""

    advice: ClassVar = {
        "kubelet": "move it to spec.kubelet of the EC2NodeClass: since v1 the NodePool has none"
    }
    node_class_ref: NodeClassRef = Field(description="The group, kind and name of an EC2NodeClass")
    taints: list[NodeTaint] = Field(default=[])
    startup_taints: list[NodeTaint] = Field(default=[])
    requirements: Annotated[list[PoolRequirement], Field(max_length=100)] = Field(
        description="A list of requirements; [] allows each instance type"
    )
    expire_after: SpanOrNever = V1.expires_after
    termination_grace_period: Span | None = None

    @field_validator("taints", "startup_taints")
    @classmethod
    def _taints_are_different(cls, found: list[NodeTaint], info: ValidationInfo) -> list[NodeTaint]:
        refuse(repeated_taints(info.data.get("taints", ()), found))
        return found


class NodeShape(Part):
    """The template of nodes."""

    advice: ClassVar = {"disruption": "move it to spec.disruption"}
    metadata: NodePoolMetadata = Field(default_factory=NodePoolMetadata)
    spec: NodeSpec = Field(description="What nodes may look like, with nodeClassRef")

    @model_validator(mode="after")
    def _nodes_can_meet_it(self) -> Self:
        faults = contradictions(asked_of_nodes(self.metadata.labels, self.spec.requirements))
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
    template: NodeShape = Field(description="The template of nodes")
    disruption: Disruption = Field(default_factory=Disruption)
    limits: Annotated[dict[str, Any], AfterValidator(quantities)] = Field(default={})
    weight: Whole32 | None = Field(default=None, ge=1, le=100)


class NodePool(CustomResource):
    """What nodes may look like, how many there may be, and when they are disrupted."""

    definition: ClassVar[Definition] = Definition(
        file="",
        api_version=V1.owner_version,
        kind=V1.owner_kind.value,
        plural="nodepools",
        description="What nodes may look like and how long they live",
        columns=(),
    )
    api_version: Annotated[str, Choice(definition.api_version)] = definition.api_version
    kind: Annotated[str, Choice(definition.kind)] = definition.kind
    metadata: dict[str, Any] = Field(default={})
    spec: NodePoolSpec = Field(description="What nodes may look like, under spec")
    status: Any = None
