"""AWSNodeTemplates of one cluster, and what they are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

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
    """The subnets, security groups and images that an AWSNodeTemplate selects now.

    Attributes:
        subnets: Most free addresses first, then by id.
        security_groups: Sorted ids.
        images: Sorted by id.
        problems: Why no machine can be made of it, for people; empty when one can.
    """

    subnets: tuple[Subnet, ...] = ()
    security_groups: tuple[str, ...] = ()
    images: tuple[FoundImage, ...] = ()
    problems: tuple[str, ...] = ()


class Templates(Protocol):
    """AWSNodeTemplates; those that Provisioners name are read together with them."""

    def set_template_status(self, name: str, status: TemplateStatus) -> None:
        """Write an AWSNodeTemplate's status unless it says so already; gone is fine."""
        ...
