"""Prerequisites in the AWS account and the cluster for launching instances that can join."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field

from shared.model.provisioner import NodeTemplate, Provisioner
from shared.ports.cloud import Subnet
from shared.ports.rivals import Rival


class AccessEntry(Struct, frozen=True, kw_only=True, order=True):
    """An EKS access entry: a principal that may call a cluster's API.

    Attributes:
        principal: ARN of the role.
        kind: `STANDARD`, or for nodes a type such as `EC2_LINUX`.
        groups: The principal's Kubernetes groups, sorted.
    """

    principal: str
    kind: str
    groups: tuple[str, ...] = ()


class VcpuQuota(Struct, frozen=True, kw_only=True, order=True):
    """How many vCPUs of standard instance families may run at once, and how many do.

    Attributes:
        code: Its code in Service Quotas.
        name: `on-demand` or `spot`.
    """

    code: str
    name: str
    value: int
    used: int


class AttachmentRoles(Struct, frozen=True, kw_only=True):
    """The roles of a cluster's stack, by ARN, and the bounds of its launches.

    Attributes:
        launch_resources: ARNs that launches may use without a tag of the cluster.
        uses_own_images: Whether launches may use every image of the account.
        metadata_hop_limit: The most network hops of a response of the instance metadata service.
        max_price_per_hour: The cluster's ceiling in dollars, None for none.
    """

    launch_role: str
    terminate_role: str
    inside_role: str
    node_role: str
    launch_resources: tuple[str, ...] = ()
    uses_own_images: bool = False
    metadata_hop_limit: int = 2
    max_price_per_hour: float | None = None


class SelectedResource(Struct, frozen=True, kw_only=True):
    """A subnet, a security group, or an image of the account that a selector matches.

    Attributes:
        name: Its id.
    """

    name: str
    arn: str
    tags: Mapping[str, str] = field(default_factory=dict)


class AccountPrerequisites(Protocol):
    """Reads one cluster's account and Region with the caller's permissions; changes nothing."""

    def attachment(self) -> AttachmentRoles | None:
        """Return the outputs of the cluster's stack, None when it is not deployed."""
        ...

    def authentication_mode(self) -> str:
        """Return `API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`.

        Raises:
            NotFoundError: There is no such cluster in this Region.
        """
        ...

    def identity_agent(self) -> str:
        """Return the status of the EKS Pod Identity Agent add-on.

        As EKS names it, such as `ACTIVE`; `BUILT_IN` in EKS Auto Mode, empty without the add-on.
        """
        ...

    def access_entries(self) -> tuple[AccessEntry, ...]:
        """Return the cluster's access entries, sorted."""
        ...

    def missing_linked_roles(self) -> Mapping[str, str]:
        """Return the service-linked roles of EC2 that the account lacks: name to service."""
        ...

    def vcpu_quotas(self) -> tuple[VcpuQuota, ...]:
        """Return the quotas of standard instances, sorted."""
        ...

    def concurrency_quota(self) -> int:
        """Return the quota of concurrent Lambda executions in the Region."""
        ...

    def selected(self, template: NodeTemplate) -> tuple[SelectedResource, ...]:
        """Return the subnets and security groups a template's selectors match, sorted by id.

        An empty selector matches nothing.
        """
        ...

    def node_policies(self, role: str) -> tuple[str, ...]:
        """Return the names of the managed policies of a role, sorted.

        Args:
            role: Its ARN.
        """
        ...

    def pod_role(self, namespace: str, service_account: str) -> str:
        """Return the ARN of the role of a service account by EKS Pod Identity, empty for none."""
        ...

    def cluster_subnets(self) -> tuple[Subnet, ...]:
        """Return the subnets that carry the cluster's tag, sorted."""
        ...


class ClusterPrerequisites(Protocol):
    """Reads the prerequisites inside one cluster; changes nothing."""

    def running(self) -> tuple[Rival, ...]:
        """Return the other autoscalers whose leader has recently renewed its lease, sorted."""
        ...

    def provisioners(self) -> tuple[Provisioner, ...]:
        """Return the usable Provisioners, sorted by name; none where they are not defined."""
        ...

    def annotated_role(self, namespace: str, service_account: str) -> str:
        """Return the ARN of the role in a service account's annotation (IRSA), empty for none."""
        ...

    def has_daemon_set(self, namespace: str, name: str) -> bool:
        """Return whether there is a DaemonSet of this name."""
        ...
