"""An account whose answers are set by a test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from functions.cli.doctor.prerequisite_ports import (
    AccessEntry,
    AttachmentRoles,
    SelectedResource,
    VcpuQuota,
)
from shared.model.errors import AutoscalerError
from shared.model.provisioner import NodeTemplate, Provisioner
from shared.ports import Rival, Subnet
from shared.settings import LINKED_ROLES

_Answer = TypeVar("_Answer")
ROLE = "arn:aws:iam::123456789012:role/"
ATTACHMENT = AttachmentRoles(
    launch_role=f"{ROLE}Dovetail-demo-us-east-1-launch",
    terminate_role=f"{ROLE}Dovetail-demo-us-east-1-terminate",
    node_role=f"{ROLE}DovetailNode-demo-us-east-1",
    inside_role=f"{ROLE}Dovetail-demo-us-east-1-inside",
    metadata_hop_limit=1,
)
ENTRIES = (
    AccessEntry(principal=ATTACHMENT.launch_role, kind="STANDARD", groups=("dovetail:launch",)),
    AccessEntry(
        principal=ATTACHMENT.terminate_role, kind="STANDARD", groups=("dovetail:terminate",)
    ),
    AccessEntry(principal=ATTACHMENT.node_role, kind="EC2_LINUX", groups=("system:nodes",)),
    AccessEntry(principal=ATTACHMENT.inside_role, kind="STANDARD", groups=("dovetail:inside",)),
)


@dataclass(slots=True, kw_only=True)
class FakeAccount:
    """Implements functions.cli.doctor.prerequisite_ports.Account; by default nothing is missing.

    Attributes:
        refused: Raised by every question when set.
    """

    attached: AttachmentRoles | None = ATTACHMENT
    mode: str = "API_AND_CONFIG_MAP"
    agent: str = "ACTIVE"
    entries: tuple[AccessEntry, ...] = ENTRIES
    roles: set[str] = field(
        default_factory=lambda: {"AWSServiceRoleForEC2Fleet", "AWSServiceRoleForEC2Spot"}
    )
    quotas: tuple[VcpuQuota, ...] = (
        VcpuQuota(code="L-1216C47A", name="on-demand", value=256, used=8),
        VcpuQuota(code="L-34B43A08", name="spot", value=256, used=8),
    )
    subnets: tuple[Subnet, ...] = (
        Subnet(subnet_id="subnet-1", zone="us-east-1a", free_addresses=200),
    )
    concurrency: int = 1000
    refused: AutoscalerError | None = None
    found: Mapping[str, SelectedResource] = field(default_factory=dict)
    policies: tuple[str, ...] = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy")
    plugin_role: str = ""

    def attachment(self) -> AttachmentRoles | None:
        return self._answer(self.attached)

    def authentication_mode(self) -> str:
        return self._answer(self.mode)

    def identity_agent(self) -> str:
        return self._answer(self.agent)

    def access_entries(self) -> tuple[AccessEntry, ...]:
        return tuple(sorted(self._answer(self.entries)))

    def missing_linked_roles(self) -> Mapping[str, str]:
        return {
            name: made
            for name, made in LINKED_ROLES.items()
            if name not in self._answer(self.roles)
        }

    def vcpu_quotas(self) -> tuple[VcpuQuota, ...]:
        return tuple(sorted(self._answer(self.quotas)))

    def concurrency_quota(self) -> int:
        return self._answer(self.concurrency)

    def cluster_subnets(self) -> tuple[Subnet, ...]:
        return tuple(sorted(self._answer(self.subnets)))

    def selected(self, template: NodeTemplate) -> tuple[SelectedResource, ...]:
        """Return what selectors name by id."""
        named = (
            template.subnet_selector,
            template.security_group_selector,
            template.ami_selector,
        )
        ids = [part for selector in named for term in selector for part in term.ids]
        return tuple(self.found[value] for value in sorted(self._answer(ids)))

    def node_policies(self, role: str) -> tuple[str, ...]:
        assert role == ATTACHMENT.node_role
        return tuple(sorted(self._answer(self.policies)))

    def pod_role(self, namespace: str, service_account: str) -> str:
        assert (namespace, service_account) == ("kube-system", "aws-node")
        return self._answer(self.plugin_role)

    def _answer(self, value: _Answer) -> _Answer:
        if self.refused is not None:
            raise self.refused
        return value


@dataclass(slots=True, kw_only=True)
class FakeSurroundings:
    """Implements `prerequisite_ports.Surroundings`; by default there is nothing to see."""

    rivals: tuple[Rival, ...] = ()
    declared: tuple[Provisioner, ...] = ()
    annotated: str = ""
    daemon_sets: tuple[str, ...] = ()

    def running(self) -> tuple[Rival, ...]:
        return self.rivals

    def provisioners(self) -> tuple[Provisioner, ...]:
        return self.declared

    def annotated_role(self, namespace: str, service_account: str) -> str:
        assert (namespace, service_account) == ("kube-system", "aws-node")
        return self.annotated

    def has_daemon_set(self, namespace: str, name: str) -> bool:
        return f"{namespace}/{name}" in self.daemon_sets
