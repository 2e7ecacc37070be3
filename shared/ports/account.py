"""What must be so in the account before machines can be bought and can join."""

from dataclasses import dataclass
from typing import Protocol

from shared.ports.cloud import Subnet


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AccessEntry:
    """Who may speak to a cluster's API.

    Attributes:
        principal: ARN of the role.
        kind: `STANDARD`, or such as `EC2_LINUX` for nodes.
        groups: Kubernetes groups it is in, sorted.
    """

    principal: str
    kind: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class VcpuQuota:
    """How many vCPUs of standard instance families may run at once, and do.

    Attributes:
        code: By which Service Quotas knows it.
        name: `on-demand` or `spot`.
    """

    code: str
    name: str
    limit: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """The roles of a cluster's stack, by ARN."""

    launch_role: str
    terminate_role: str
    node_role: str


class Account(Protocol):
    """Answers for one cluster in its account and Region, under whoever asks; changes nothing."""

    def attachment(self) -> Attachment | None:
        """Return what the cluster's stack made, None when it is not deployed."""
        ...

    def authentication_mode(self) -> str:
        """Return `API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`.

        Raises:
            NotFoundError: There is no such cluster in this Region.
        """
        ...

    def access_entries(self) -> tuple[AccessEntry, ...]:
        """Return the cluster's access entries, sorted."""
        ...

    def has_role(self, name: str) -> bool:
        """Say whether the account has a role of this name."""
        ...

    def vcpu_quotas(self) -> tuple[VcpuQuota, ...]:
        """Return the quotas of standard instances, sorted."""
        ...

    def free_concurrency(self) -> int:
        """Return how many functions without a reservation may run at once in the Region."""
        ...

    def cluster_subnets(self) -> tuple[Subnet, ...]:
        """Return the subnets that carry the cluster's tag, sorted."""
        ...
