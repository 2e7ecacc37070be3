"""AWSNodeTemplates and EC2NodeClasses of one cluster, and what is written into their status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shared.model.dialect import OwnerKind
from shared.model.provisioner import NodeTemplate
from shared.model.resources import Resources
from shared.ports.cloud import Subnet


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundImage:
    """An AMI that machines of a template boot.

    Attributes:
        labels: What machines must answer to boot it: the architecture at least.
        has, lacks: Labels that they must have, whatever the value, or must not have; sorted.
        deprecated: Whether its owner advises against it. Only EC2NodeClasses show it.
    """

    image_id: str
    name: str
    labels: Mapping[str, str] = field(hash=False)
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    deprecated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """An EC2NodeClass of the cluster.

    Attributes:
        problems: What is wrong in it, for people; empty when it can be used.
    """

    name: str
    template: NodeTemplate
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """What the nodes of a Provisioner or NodePool are, together.

    Attributes:
        unhealthy: Names of nodes that were initialized and have not been Ready for five minutes,
            for people; empty for none.
        registers: Of a NodePool: whether its last instances joined, None when that is not known.
        price_micros_per_hour: Of a Provisioner: NodePools may be of Karpenter's definition.
    """

    nodes: int
    resources: Resources
    unhealthy: str = ""
    registers: bool | None = None
    price_micros_per_hour: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStatus:
    """The subnets, security groups and images that an AWSNodeTemplate or EC2NodeClass selects now.

    Attributes:
        subnets: Most free addresses first, then by id.
        security_groups: Sorted ids.
        images: Sorted by id.
        instance_profile: Of the machines; empty when there is none. Only EC2NodeClasses show it.
        problems: Why no machine can be made of it, for people; empty when one can.
        invalid: Whether that is because of a wrong field in it.
        unsupported_alias: Whether it names images that the cluster's version does not have.
    """

    subnets: tuple[Subnet, ...] = ()
    security_groups: tuple[str, ...] = ()
    images: tuple[FoundImage, ...] = ()
    instance_profile: str = ""
    problems: tuple[str, ...] = ()
    invalid: bool = False
    unsupported_alias: bool = False


class Templates(Protocol):
    """AWSNodeTemplates and EC2NodeClasses; those that are named are read with what names them."""

    def node_classes(self) -> tuple[NodeClass, ...]:
        """Return all EC2NodeClasses, also those that no NodePool names, sorted by name."""
        ...

    def set_pool_status(
        self, name: str, status: PoolStatus, owner: OwnerKind = OwnerKind.NODE_POOL
    ) -> None:
        """Write into an owner's status what its nodes are, unless it says so; gone is fine."""
        ...

    def set_template_status(
        self, name: str, status: TemplateStatus, owner: OwnerKind = OwnerKind.PROVISIONER
    ) -> None:
        """Write the status of what an owner names unless it says so already; gone is fine.

        A NodePool names an EC2NodeClass.
        """
        ...
