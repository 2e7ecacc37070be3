"""Reads the prerequisites of a launch in the AWS account, with the caller's permissions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from functions.cli.doctor.prerequisite_ports import (
    AccessEntry,
    AttachmentRoles,
    SelectedResource,
    VcpuQuota,
)
from shared.aws.ec2.fleets_and_images import image_request, term_filters
from shared.aws.errors import translated
from shared.aws.linked_roles import missing_linked_roles
from shared.aws.session import Session
from shared.model.errors import NotFoundError
from shared.model.provisioner import NodeTemplate
from shared.ports import Subnet
from shared.settings import ClusterAttachment

# Running On-Demand Standard instances, and all Standard Spot Instance Requests.
# Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html (2026-08).
_QUOTAS: Final = {"on-demand": "L-1216C47A", "spot": "L-34B43A08"}
# EC2's keys of id and ARN of a subnet and of a security group.
_SUBNET: Final = ("SubnetId", "SubnetArn")
_GROUP: Final = ("GroupId", "SecurityGroupArn")
# EC2 returns no ARN of an image.
_IMAGE: Final = ("ImageId", "")
_AGENT: Final = "eks-pod-identity-agent"
_STANDARD: Final = frozenset("acdhimrtz")
# Families whose first letter is standard but that count towards another quota.
_OTHERS: Final = ("dl", "hpc", "inf", "mac", "trn")


class AwsAccount:
    """Implements functions.cli.doctor.prerequisite_ports.AccountPrerequisites.

    Args:
        attached: Returns a cluster's attachment, or raises NotFoundError.
    """

    def __init__(
        self, session: Session, *, cluster: str, attached: Callable[[str], ClusterAttachment]
    ) -> None:
        self._session = session
        self._cluster = cluster
        self._attached = attached

    def attachment(self) -> AttachmentRoles | None:
        """Return the outputs of the cluster's stack, None when it is not deployed."""
        try:
            found = self._attached(self._cluster)
        except NotFoundError:
            return None
        name = found.instance_profile
        with translated(f"iam GetInstanceProfile {name}"):
            answer = self._session.client("iam").get_instance_profile(InstanceProfileName=name)
        roles = answer["InstanceProfile"]["Roles"]
        return AttachmentRoles(
            launch_role=found.launch_role,
            terminate_role=found.terminate_role,
            inside_role=found.inside_role,
            node_role=roles[0]["Arn"] if roles else "",
            launch_resources=found.launch_resources,
            uses_own_images=found.own_images == "all",
            metadata_hop_limit=found.metadata_hop_limit,
            max_price_per_hour=found.brakes.max_price_per_hour,
        )

    def authentication_mode(self) -> str:
        """Return the cluster's authentication mode; `CONFIG_MAP` for old clusters without one."""
        found = self._described().get("accessConfig") or {}
        return str(found.get("authenticationMode") or "CONFIG_MAP")

    def identity_agent(self) -> str:
        """Return the status of the EKS Pod Identity Agent add-on.

        `BUILT_IN` in EKS Auto Mode, whose nodes have the agent; empty without the add-on.
        Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html (2026-11).
        """
        if (self._described().get("computeConfig") or {}).get("enabled"):
            return "BUILT_IN"
        try:
            with translated(f"eks DescribeAddon {self._cluster} {_AGENT}"):
                answer = self._session.client("eks").describe_addon(
                    clusterName=self._cluster, addonName=_AGENT
                )
        except NotFoundError:
            return ""
        return str(answer["addon"]["status"])

    def access_entries(self) -> tuple[AccessEntry, ...]:
        """Return the cluster's access entries, sorted."""
        eks = self._session.client("eks")
        found = []
        with translated(f"eks ListAccessEntries {self._cluster}"):
            pages = eks.get_paginator("list_access_entries").paginate(clusterName=self._cluster)
            for arn in [arn for page in pages for arn in page["accessEntries"]]:
                one = eks.describe_access_entry(clusterName=self._cluster, principalArn=arn)
                found.append(_entry(one["accessEntry"]))
        return tuple(sorted(found))

    def missing_linked_roles(self) -> Mapping[str, str]:
        """Return the service-linked roles of EC2 that the account lacks: name to service."""
        return missing_linked_roles(self._session)

    def vcpu_quotas(self) -> tuple[VcpuQuota, ...]:
        """Return the quotas of standard instances, sorted."""
        used = self._vcpus()
        return tuple(
            sorted(
                VcpuQuota(code=code, name=name, value=self._quota_value(code), used=used[name])
                for name, code in _QUOTAS.items()
            )
        )

    def concurrency_quota(self) -> int:
        """Return the quota of concurrent Lambda executions in the Region."""
        with translated("lambda GetAccountSettings"):
            answer = self._session.client("lambda").get_account_settings()
        return int(answer["AccountLimit"]["ConcurrentExecutions"])

    def selected(self, template: NodeTemplate) -> tuple[SelectedResource, ...]:
        """Return what a template's selectors match, sorted by id.

        Only images of the account, by ids, names and tags; SSM parameters are not read.
        """
        found = []
        for selector, operation, key, of_id, row_id, arn in (
            (template.subnet_selector, "describe_subnets", "Subnets", "subnet-id", *_SUBNET),
            (
                template.security_group_selector,
                "describe_security_groups",
                "SecurityGroups",
                "group-id",
                *_GROUP,
            ),
        ):
            for term in selector:
                rows = self._pages(operation, key, Filters=term_filters(term, of_id))
                found += [_selected(row, row_id, arn) for row in rows]
        for term in template.ami_selector:
            if not term.parameters:
                request = {**image_request(term), "Owners": ["self"]}
                rows = self._pages("describe_images", "Images", **request)
                found += [_selected(row, *_IMAGE) for row in rows]
        once = {entry.name: entry for entry in found}
        return tuple(once[name] for name in sorted(once))

    def node_policies(self, role: str) -> tuple[str, ...]:
        """Return the names of the managed policies of a role, sorted."""
        name = role.rsplit("/", 1)[-1]
        with translated(f"iam ListAttachedRolePolicies {name}"):
            pages = self._session.client("iam").get_paginator("list_attached_role_policies")
            found = [policy for page in pages.paginate(RoleName=name) for policy in _policies(page)]
        return tuple(sorted(found))

    def pod_role(self, namespace: str, service_account: str) -> str:
        """Return the ARN of the role of a service account by EKS Pod Identity, empty for none."""
        eks = self._session.client("eks")
        named = {"namespace": namespace, "serviceAccount": service_account}
        with translated(f"eks ListPodIdentityAssociations {self._cluster}"):
            answer = eks.list_pod_identity_associations(clusterName=self._cluster, **named)
            for row in answer["associations"]:
                association = eks.describe_pod_identity_association(
                    clusterName=self._cluster, associationId=row["associationId"]
                )["association"]
                return str(association["roleArn"])
        return ""

    def cluster_subnets(self) -> tuple[Subnet, ...]:
        """Return the subnets that carry the cluster's tag, sorted."""
        wanted = [{"Name": "tag-key", "Values": [f"kubernetes.io/cluster/{self._cluster}"]}]
        found = self._pages("describe_subnets", "Subnets", Filters=wanted)
        return tuple(
            sorted(
                Subnet(
                    subnet_id=entry["SubnetId"],
                    zone=entry["AvailabilityZone"],
                    free_addresses=entry["AvailableIpAddressCount"],
                )
                for entry in found
            )
        )

    def _described(self) -> Mapping[str, Any]:
        with translated(f"eks DescribeCluster {self._cluster}"):
            answer = self._session.client("eks").describe_cluster(name=self._cluster)
        found: Mapping[str, Any] = answer["cluster"]
        return found

    def _quota_value(self, code: str) -> int:
        with translated(f"service-quotas GetServiceQuota {code}"):
            answer = self._session.client("service-quotas").get_service_quota(
                ServiceCode="ec2", QuotaCode=code
            )
        return int(answer["Quota"]["Value"])

    def _vcpus(self) -> dict[str, int]:
        running = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        used = dict.fromkeys(_QUOTAS, 0)
        for group in self._pages("describe_instances", "Reservations", Filters=running):
            for row in group["Instances"]:
                if _is_standard(row["InstanceType"]):
                    capacity_type = (
                        "spot" if row.get("InstanceLifecycle") == "spot" else "on-demand"
                    )
                    cpu = row.get("CpuOptions") or {}
                    used[capacity_type] += cpu.get("CoreCount", 1) * cpu.get("ThreadsPerCore", 1)
        return used

    def _pages(self, operation: str, key: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
        with translated(f"ec2 {operation}"):
            for page in self._session.client("ec2").get_paginator(operation).paginate(**arguments):
                yield from page[key]


def _entry(raw: Mapping[str, Any]) -> AccessEntry:
    return AccessEntry(
        principal=raw["principalArn"],
        kind=str(raw.get("type") or "STANDARD"),
        groups=tuple(sorted(raw.get("kubernetesGroups") or ())),
    )


def _policies(page: Mapping[str, Any]) -> list[str]:
    return [attached_policy["PolicyName"] for attached_policy in page["AttachedPolicies"]]


def _selected(row: Mapping[str, Any], id_key: str, arn_key: str) -> SelectedResource:
    tags = {tag["Key"]: tag["Value"] for tag in row.get("Tags", ())}
    return SelectedResource(name=row[id_key], arn=row.get(arn_key, ""), tags=tags)


def _is_standard(instance_type: str) -> bool:
    return instance_type[0] in _STANDARD and not instance_type.startswith(_OTHERS)
