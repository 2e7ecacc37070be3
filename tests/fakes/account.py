"""An account whose answers are set by a test."""

from dataclasses import dataclass, field
from typing import TypeVar

from shared.model.errors import AutoscalerError
from shared.ports import Subnet
from shared.ports.account import AccessEntry, Attachment, VcpuQuota

_Answer = TypeVar("_Answer")
ROLE = "arn:aws:iam::123456789012:role/"
ATTACHMENT = Attachment(
    launch_role=f"{ROLE}Dovetail-demo-us-east-1-launch",
    terminate_role=f"{ROLE}Dovetail-demo-us-east-1-terminate",
    node_role=f"{ROLE}DovetailNode-demo-us-east-1",
)
ENTRIES = (
    AccessEntry(principal=ATTACHMENT.launch_role, kind="STANDARD", groups=("dovetail:launch",)),
    AccessEntry(
        principal=ATTACHMENT.terminate_role, kind="STANDARD", groups=("dovetail:terminate",)
    ),
    AccessEntry(principal=ATTACHMENT.node_role, kind="EC2_LINUX", groups=("system:nodes",)),
)


@dataclass(slots=True, kw_only=True)
class FakeAccount:
    """Implements shared.ports.account.Account; by default nothing is missing.

    Attributes:
        refused: Raised by every question when set.
    """

    attached: Attachment | None = ATTACHMENT
    mode: str = "API_AND_CONFIG_MAP"
    entries: tuple[AccessEntry, ...] = ENTRIES
    roles: set[str] = field(
        default_factory=lambda: {"AWSServiceRoleForEC2Fleet", "AWSServiceRoleForEC2Spot"}
    )
    quotas: tuple[VcpuQuota, ...] = (
        VcpuQuota(code="L-1216C47A", name="on-demand", limit=256, used=8),
        VcpuQuota(code="L-34B43A08", name="spot", limit=256, used=8),
    )
    subnets: tuple[Subnet, ...] = (
        Subnet(subnet_id="subnet-1", zone="us-east-1a", free_addresses=200),
    )
    concurrency: int = 1000
    refused: AutoscalerError | None = None

    def attachment(self) -> Attachment | None:
        return self._answer(self.attached)

    def authentication_mode(self) -> str:
        return self._answer(self.mode)

    def access_entries(self) -> tuple[AccessEntry, ...]:
        return tuple(sorted(self._answer(self.entries)))

    def has_role(self, name: str) -> bool:
        return name in self._answer(self.roles)

    def vcpu_quotas(self) -> tuple[VcpuQuota, ...]:
        return tuple(sorted(self._answer(self.quotas)))

    def free_concurrency(self) -> int:
        return self._answer(self.concurrency)

    def cluster_subnets(self) -> tuple[Subnet, ...]:
        return tuple(sorted(self._answer(self.subnets)))

    def _answer(self, value: _Answer) -> _Answer:
        if self.refused is not None:
            raise self.refused
        return value
