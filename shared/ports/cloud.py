"""Ports of EC2: instances, images, launch templates, fleets and instance types."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct, field

from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import FleetAnswer, Instance
from shared.model.ec2.selectors import Selector
from shared.model.provisioner import NodeTemplate


class Subnet(Struct, frozen=True, kw_only=True, order=True):
    """A subnet in which nodes may be launched.

    Attributes:
        zone_id: The zone's id, the same in all accounts; empty when EC2 does not return it.
    """

    subnet_id: str
    zone: str
    free_addresses: int
    zone_id: str = ""


class Site(Struct, frozen=True, kw_only=True):
    """The subnets and security groups that a Provisioner's selectors match.

    Attributes:
        subnets: Sorted by zone, then most free addresses first.
    """

    subnets: tuple[Subnet, ...]
    security_groups: tuple[str, ...]

    def without_subnets(self, subnets: Collection[str]) -> "Site":
        """Return the site without the subnets of these IDs."""
        kept = tuple(subnet for subnet in self.subnets if subnet.subnet_id not in subnets)
        return Site(subnets=kept, security_groups=self.security_groups)


class MachineImage(Struct, frozen=True, kw_only=True):
    """An AMI that can be launched.

    Attributes:
        architecture: `amd64` or `arm64`.
        deprecated: Whether its owner has deprecated it; it is used only where there is no other.
    """

    image_id: str
    name: str
    architecture: str
    created_at: datetime
    deprecated: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


class ClusterEndpoint(Struct, frozen=True, kw_only=True):
    """What an instance needs to join the cluster."""

    name: str
    endpoint: str
    certificate_authority: str
    version: str
    service_cidr: str


class Instances(Protocol):
    """The EC2 instances of one cluster."""

    def instances(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        """Return the instances of these ids that EC2 knows, sorted by id."""
        ...

    def tagged_instances(self, tags: Mapping[str, str]) -> tuple[Instance, ...]:
        """Return this cluster's instances, not terminated, that have all tags, sorted by id."""
        ...

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Terminate instances; unknown ids are ignored."""
        ...


class CloudProvider(Instances, Protocol):
    """EC2, SSM parameters and the EKS endpoint in one Region, with the roles of one cluster."""

    def endpoint(self) -> ClusterEndpoint:
        """Return what instances need to join this cluster."""
        ...

    def site(self, template: NodeTemplate) -> Site:
        """Return the subnets and security groups that a template's selectors match."""
        ...

    def image_ids(self, parameters: Sequence[str]) -> Mapping[str, str]:
        """Return the AMI id for each SSM parameter name that exists."""
        ...

    def find_images(self, selector: Selector) -> tuple[MachineImage, ...]:
        """Return the AMIs that any term of a selector matches, each once, sorted by id."""
        ...

    def ensure_launch_template(self, name: str, launch_data: Mapping[str, Any]) -> None:
        """Create the launch template unless one of that name exists."""
        ...

    def launch_templates(self) -> tuple[tuple[str, datetime], ...]:
        """Return name and creation time of this cluster's launch templates, sorted by name."""
        ...

    def delete_launch_template(self, name: str) -> None:
        """Delete a launch template if it exists."""
        ...

    def create_fleet(self, request: Mapping[str, Any]) -> FleetAnswer:
        """Launch instances with exactly this CreateFleet request.

        Raises:
            ThrottledError: EC2 throttled the request; nothing was launched.
            UnavailableError: The outcome is unknown: look for instances by tag.
            NotFoundError: The launch template is gone.
        """
        ...


class InstanceTypeProvider(Protocol):
    """The instance types that can be launched in the Region."""

    def instance_types(self) -> tuple[InstanceType, ...]:
        """Return all instance types with an offering, sorted by name; none if `problem` is set."""
        ...

    def problem(self) -> str:
        """Return why nothing can be launched in this Region at all, empty if something can."""
        ...
