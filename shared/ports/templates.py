"""AWSNodeTemplates and EC2NodeClasses of one cluster, and what is written into their status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shared.model.dialect import OwnerKind
from shared.ports.cloud import Subnet


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundImage:
    """An AMI that machines of a template boot.

    Attributes:
        labels: What machines must answer to boot it: the architecture at least.
    """

    image_id: str
    name: str
    labels: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStatus:
    """The subnets, security groups and images that an AWSNodeTemplate or EC2NodeClass selects now.

    Attributes:
        subnets: Most free addresses first, then by id.
        security_groups: Sorted ids.
        images: Sorted by id.
        problems: Why no machine can be made of it, for people; empty when one can.
        invalid: Whether that is because of a wrong field in it.
    """

    subnets: tuple[Subnet, ...] = ()
    security_groups: tuple[str, ...] = ()
    images: tuple[FoundImage, ...] = ()
    problems: tuple[str, ...] = ()
    invalid: bool = False


class Templates(Protocol):
    """AWSNodeTemplates and EC2NodeClasses; those that are named are read with what names them."""

    def set_template_status(
        self, name: str, status: TemplateStatus, owner: OwnerKind = OwnerKind.PROVISIONER
    ) -> None:
        """Write the status of what an owner names unless it says so already; gone is fine.

        Args:
            owner: The kind of the owner: a NodePool names an EC2NodeClass.
        """
        ...
