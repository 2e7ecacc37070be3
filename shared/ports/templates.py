"""AWSNodeTemplates and EC2NodeClasses of one cluster, and their status."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from shared.model.dialect import OwnerKind
from shared.model.provisioner import NodeTemplate
from shared.model.resources import Resources
from shared.ports.cloud import Subnet


class FoundImage(Struct, frozen=True, kw_only=True):
    """An AMI that instances of a template boot.

    Attributes:
        labels: Labels that an instance type must have to boot it: the architecture at least.
        has, lacks: Labels that it must have, whatever the value, or must not have; sorted.
        deprecated: Whether its owner has deprecated it. Only EC2NodeClasses show it.
    """

    image_id: str
    name: str
    labels: Mapping[str, str]
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    deprecated: bool = False


class NodeClass(Struct, frozen=True, kw_only=True):
    """An EC2NodeClass of the cluster.

    Attributes:
        problems: What is wrong with it, for people; empty when it can be used.
    """

    name: str
    template: NodeTemplate
    problems: tuple[str, ...] = ()


class PoolStatus(Struct, frozen=True, kw_only=True):
    """A summary of the nodes of a Provisioner or NodePool.

    Attributes:
        unhealthy: Names of nodes that were initialized and have not been Ready for five minutes,
            for people; empty for none.
        registers: Of a NodePool: whether its last instances joined, None when that is not known.
        price_micros_per_hour: Of a Provisioner only: the CRD of NodePools may be Karpenter's.
    """

    nodes: int
    resources: Resources
    unhealthy: str = ""
    registers: bool | None = None
    price_micros_per_hour: int = 0


class TemplateStatus(Struct, frozen=True, kw_only=True):
    """The subnets, security groups and images that an AWSNodeTemplate or EC2NodeClass selects now.

    Attributes:
        subnets: Most free addresses first, then by id.
        security_groups: Sorted ids.
        images: Sorted by id.
        instance_profile: Of the instances; empty when there is none. Only EC2NodeClasses show it.
        problems: Why no instance can be launched with it, for people; empty when one can.
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
    """AWSNodeTemplates and EC2NodeClasses; those that an owner names are read with the owner."""

    def node_classes(self) -> tuple[NodeClass, ...]:
        """Return all EC2NodeClasses, also those that no NodePool names, sorted by name."""
        ...

    def set_pool_status(
        self, name: str, status: PoolStatus, owner: OwnerKind = OwnerKind.NODE_POOL
    ) -> None:
        """Write the summary of its nodes into an owner's status, if it exists and differs."""
        ...

    def set_template_status(
        self, name: str, status: TemplateStatus, owner: OwnerKind = OwnerKind.PROVISIONER
    ) -> None:
        """Write the status of an owner's template, if the template exists and its status differs.

        The template of a NodePool is an EC2NodeClass.
        """
        ...
