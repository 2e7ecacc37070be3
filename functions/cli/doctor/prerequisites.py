"""Checks what must exist before the first instance can launch and join.

Each finding has a command.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from functions.cli.doctor.findings import Finding
from functions.cli.doctor.launch_rights import launch_right_findings, node_role_findings
from functions.cli.doctor.prerequisite_ports import (
    AccessEntry,
    AccountPrerequisites,
    AttachmentRoles,
    ClusterPrerequisites,
    VcpuQuota,
)
from shared.model.errors import AutoscalerError, CertificateError
from shared.ports import Rival, RivalKind
from shared.snapshot.deployment import DOLLARS, deploy_command

# Access entries are read in these modes only.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/grant-k8s-access.html (2026-08).
_WITH_ENTRIES: Final = frozenset({"API", "API_AND_CONFIG_MAP"})
# Name of the add-on and its DaemonSet. While it is created or updated its pods run, or soon will.
# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Addon.html and
# https://github.com/aws/eks-pod-identity-agent, charts/eks-pod-identity-agent (2026-11).
_AGENT: Final = "eks-pod-identity-agent"
_AGENT_RUNS: Final = frozenset({"ACTIVE", "BUILT_IN", "CREATING", "UPDATING"})
# As many as the largest instance that is launched by default has (max_node_vcpus).
_FREE_VCPUS: Final = 96
_ASKED_VCPUS: Final = 256
# A node with the VPC network plugin takes an address for itself and one for each pod.
_FREE_ADDRESSES: Final = 32
# Ten functions, some of which serve several events at once. New accounts start with a limit of 10.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html (2026-11).
# What the functions reserve together, and the 100 that Lambda leaves to others.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html (2026-11).
LEAST_CONCURRENCY: Final = 481
_ASKED_CONCURRENCY: Final = 1000
_DEPLOYMENTS: Final = {
    RivalKind.CLUSTER_AUTOSCALER: "cluster-autoscaler",
    RivalKind.KARPENTER: "karpenter",
}
# Checks in the cluster itself, and the permission that each needs there.
_INSIDE: Final = {
    "autoscalers": "list leases -A",
    "launch-rights": "list provisioners",
    "node-role": "get serviceaccounts -n kube-system",
}
_ROLE_SUFFIXES: Final = ("-inside", "-launch", "-terminate")
NODES_KIND: Final = "EC2_LINUX"


class Prerequisites:
    """Checks the prerequisites of one cluster.

    Args:
        surroundings: Connects to the cluster when it is called for the first time.
    """

    def __init__(
        self,
        cluster: str,
        account: AccountPrerequisites,
        surroundings: Callable[[], ClusterPrerequisites],
    ) -> None:
        self._cluster = cluster
        self._account = account
        self._surroundings = functools.cache(surroundings)

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings, sorted; nothing is changed.

        A check that a missing permission or connection prevents is a finding, too.
        """
        checks = (
            ("authentication-mode", self._authentication_mode),
            ("identity-agent", self._identity_agent),
            ("access-entries", self._access_entries),
            ("service-linked-roles", self._linked_roles),
            ("quotas", self._quotas),
            ("concurrency", self._concurrency),
            ("subnets", self._subnets),
            ("launch-rights", self._launch_rights),
            ("node-role", self._node_role),
            ("autoscalers", self._autoscalers),
        )
        found: list[Finding] = []
        for name, check in checks:
            try:
                found.extend(check())
            except AutoscalerError as error:
                found.append(_not_checked(name, error, self._cluster))
        return tuple(sorted(set(found)))

    def _authentication_mode(self) -> Iterator[Finding]:
        mode = self._account.authentication_mode()
        if mode not in _WITH_ENTRIES:
            yield Finding(
                kind="authentication-mode",
                subject=self._cluster,
                text=f"is {mode}: access entries are not read, so no function is let in",
                command=f"aws eks update-cluster-config --name {self._cluster} "
                "--access-config authenticationMode=API_AND_CONFIG_MAP",
            )

    def _identity_agent(self) -> Iterator[Finding]:
        """Report a missing or inactive agent: without it the forwarder runs but cannot publish."""
        status = self._account.identity_agent()
        if status in _AGENT_RUNS or (not status and self._brings_its_own_agent()):
            return
        verb = "describe" if status else "create"
        yield Finding(
            kind="identity-agent",
            subject=_AGENT,
            text=f"the add-on {f'is {status}' if status else 'is missing'}: EKS Pod Identity gives "
            "the forwarder no credentials, so no event reaches the functions",
            command=f"aws eks {verb}-addon --cluster-name {self._cluster} --addon-name {_AGENT}",
        )

    def _brings_its_own_agent(self) -> bool:
        """Return whether the agent was installed without the add-on, as by its Helm chart."""
        try:
            return self._surroundings().has_daemon_set("kube-system", _AGENT)
        except AutoscalerError:
            return False

    def _access_entries(self) -> Iterator[Finding]:
        attachment = self._account.attachment()
        entries = {
            access_entry.principal: access_entry for access_entry in self._account.access_entries()
        }
        if attachment is None:
            yield Finding(
                kind="not-attached",
                subject=self._cluster,
                text="no stack attaches it yet",
                command=deploy_command(self._cluster, DOLLARS),
            )
            yield from self._left_over(entries.values())
            return
        for principal, kind, groups in _required_entries(attachment):
            entry = entries.get(principal)
            if entry is None:
                yield self._missing(principal, kind, groups)
            elif entry.kind != kind or not set(groups) <= set(entry.groups):
                yield self._different(entry, kind, groups)

    def _left_over(self, entries: Iterable[AccessEntry]) -> Iterator[Finding]:
        """Report entries of roles that the stack will create: EKS identifies a role by its id."""
        for entry in sorted(entries):
            name = entry.principal.rsplit("/", 1)[-1]
            if name.startswith("DovetailNode-") or (
                name.startswith("Dovetail-") and name.endswith(_ROLE_SUFFIXES)
            ):
                yield Finding(
                    kind="access-entry-left",
                    subject=name,
                    text="has an access entry that no stack made: the deployment fails with "
                    "'already in use', and the entry of a deleted role grants no access",
                    command=self._access_entry_command("delete", entry.principal),
                )

    def _missing(self, principal: str, kind: str, groups: tuple[str, ...]) -> Finding:
        given = f"--type {kind}" if kind == NODES_KIND else f"--kubernetes-groups {groups[0]}"
        return Finding(
            kind="access-entry",
            subject=principal.rsplit("/", 1)[-1],
            text="has no access entry: the cluster does not let it in",
            command=f"{self._access_entry_command('create', principal)} {given}",
        )

    def _different(self, entry: AccessEntry, kind: str, groups: tuple[str, ...]) -> Finding:
        command = (
            f"{self._access_entry_command('delete', entry.principal)} && "
            f"{self._missing(entry.principal, kind, groups).command}"
            if entry.kind != kind
            else f"{self._access_entry_command('update', entry.principal)} --kubernetes-groups "
            f"{' '.join(sorted({*entry.groups, *groups}))}"
        )
        wanted = kind if entry.kind != kind else f"group {groups[0]}"
        return Finding(
            kind="access-entry",
            subject=entry.principal.rsplit("/", 1)[-1],
            text=f"has an entry of type {entry.kind} with groups "
            f"{', '.join(entry.groups) or 'none'}: {wanted} is needed",
            command=command,
        )

    def _access_entry_command(self, verb: str, principal: str) -> str:
        return (
            f"aws eks {verb}-access-entry --cluster-name {self._cluster} "
            f"--principal-arn {principal}"
        )

    def _linked_roles(self) -> Iterator[Finding]:
        if self._account.attachment() is None:
            return  # refresh_catalog makes them once it is deployed
        for name, service in self._account.missing_linked_roles().items():
            yield Finding(
                kind="service-linked-role",
                subject=name,
                text="is missing, and refresh_catalog has not made it: EC2 refuses to launch",
                command=f"aws iam create-service-linked-role --aws-service-name {service}",
            )

    def _quotas(self) -> Iterator[Finding]:
        for vcpu_quota in self._account.vcpu_quotas():
            if vcpu_quota.value - vcpu_quota.used < _FREE_VCPUS:
                yield Finding(
                    kind="quota",
                    subject=f"{vcpu_quota.name} vCPUs",
                    text=f"{vcpu_quota.used} of {vcpu_quota.value} are in use: "
                    f"less than {_FREE_VCPUS} are left, one large instance",
                    command=_quota_command(vcpu_quota),
                )

    def _concurrency(self) -> Iterator[Finding]:
        quota = self._account.concurrency_quota()
        if quota < LEAST_CONCURRENCY:
            yield Finding(
                kind="quota",
                subject="Lambda concurrency",
                text=f"{quota} functions may run at once in this Region: fewer than "
                f"{LEAST_CONCURRENCY}, the deployment fails unless it is made with "
                "-c concurrency=shared, and then events wait while others run",
                command="aws service-quotas request-service-quota-increase --service-code lambda "
                f"--quota-code L-B99A9384 --desired-value {_ASKED_CONCURRENCY}",
            )

    def _subnets(self) -> Iterator[Finding]:
        subnets = self._account.cluster_subnets()
        if not subnets:
            yield Finding(
                kind="subnets",
                subject=self._cluster,
                text=f"no subnet has the tag kubernetes.io/cluster/{self._cluster}, "
                "by which Provisioners find theirs unless they say otherwise",
                command="aws ec2 create-tags --resources <subnet-id> "
                f"--tags Key=kubernetes.io/cluster/{self._cluster},Value=shared",
            )
        for subnet in subnets:
            if subnet.free_addresses < _FREE_ADDRESSES:
                yield Finding(
                    kind="subnet-addresses",
                    subject=subnet.subnet_id,
                    text=f"has {subnet.free_addresses} free addresses in {subnet.zone}: "
                    f"a full node needs about {_FREE_ADDRESSES}",
                    command="aws ec2 associate-vpc-cidr-block --vpc-id <vpc-id> "
                    "--cidr-block 100.64.0.0/16",
                )

    def _launch_rights(self) -> Iterator[Finding]:
        provisioners = self._surroundings().provisioners()
        attachment = self._account.attachment()
        yield from launch_right_findings(self._cluster, provisioners, self._account, attachment)

    def _node_role(self) -> Iterator[Finding]:
        attachment = self._account.attachment()
        if attachment is not None:
            annotated = self._surroundings().annotated_role
            yield from node_role_findings(self._cluster, attachment, self._account, annotated)

    def _autoscalers(self) -> Iterator[Finding]:
        for rival in self._surroundings().running():
            namespace, deployment = rival.where.partition("/")[0], _DEPLOYMENTS[rival.kind]
            yield Finding(
                kind="second-autoscaler",
                subject=rival.kind.value,
                text=f"runs (lease {rival.where}{_held_by(rival)}): two autoscalers conflict",
                command=f"kubectl -n {namespace} scale deployment {deployment} --replicas 0",
            )


def _required_entries(attachment: AttachmentRoles) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return principal, type and groups of the entries that must exist."""
    return (
        (attachment.launch_role, "STANDARD", ("dovetail:launch",)),
        (attachment.terminate_role, "STANDARD", ("dovetail:terminate",)),
        (attachment.node_role, NODES_KIND, ()),
        (attachment.inside_role, "STANDARD", ("dovetail:inside",)),
    )


def _quota_command(quota: VcpuQuota) -> str:
    wanted = max(_ASKED_VCPUS, 2 * quota.value)
    return (
        "aws service-quotas request-service-quota-increase --service-code ec2 "
        f"--quota-code {quota.code} --desired-value {wanted}"
    )


def _held_by(rival: Rival) -> str:
    return f" held by {rival.holder}" if rival.holder else ""


def _not_checked(name: str, error: AutoscalerError, cluster: str) -> Finding:
    if isinstance(error, CertificateError):
        return Finding(
            kind="certificate",
            subject=cluster,
            text=" ".join(str(error).split()),
            command=f"aws eks describe-cluster --name {cluster} "
            "--query cluster.certificateAuthority.data --output text | base64 -d | "
            "openssl x509 -noout -text",
        )
    command = "aws sts get-caller-identity"
    if name in _INSIDE:
        permission = _INSIDE[name]
        command = f"aws eks update-kubeconfig --name {cluster} && kubectl auth can-i {permission}"
    return Finding(
        kind="not-checked", subject=name, text=" ".join(str(error).split()), command=command
    )
