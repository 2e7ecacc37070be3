"""Findings on resources that selectors find but the launch role may not use.

Also on what pods can do with the node role.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from functions.cli.doctor.findings import Finding
from functions.cli.doctor.prerequisite_ports import (
    AccountPrerequisites,
    AttachmentRoles,
    SelectedResource,
)
from shared.model.ec2.selectors import tagged
from shared.model.provisioner import NodeTemplate, Provisioner
from shared.model.values import replace
from shared.snapshot.deployment import deploy_command

CNI_POLICY: Final = "AmazonEKS_CNI_Policy"
_PLUGIN: Final = ("kube-system", "aws-node")
_DISCOVERY: Final = "karpenter.sh/discovery"
_IMAGE: Final = "ami-"
# What a policy of the node role lets its holder do, beyond this one node.
# Source: https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html
# (2026-11).
_REACH: Final[Mapping[str, str]] = {
    "AmazonEC2ContainerRegistryPullOnly": "pull every image of the account's registries",
    "AmazonEC2ContainerRegistryReadOnly": "pull every image of the account's registries",
    "AmazonEKSWorkerNodePolicy": "describe instances, volumes, networks and clusters",
    CNI_POLICY: "attach, detach, change and delete every network interface of the account",
    "AmazonSSMManagedInstanceCore": "read every SSM parameter that is not a SecureString",
}


def launch_right_findings(
    cluster: str,
    provisioners: Iterable[Provisioner],
    account: AccountPrerequisites,
    attachment: AttachmentRoles | None,
) -> Iterator[Finding]:
    """Yield each selected subnet, security group and own image that launches may not use."""
    listed = attachment.launch_resources if attachment else ()
    every_image = attachment is not None and attachment.uses_own_images
    found: dict[str, tuple[SelectedResource, list[str]]] = {}
    for provisioner in provisioners:
        for selected in account.selected(_selecting(cluster, provisioner.template)):
            if every_image and selected.name.startswith(_IMAGE):
                continue
            if not _is_usable(cluster, selected, listed):
                found.setdefault(selected.name, (selected, []))[1].append(provisioner.name)
    for name, (_, owners) in sorted(found.items()):
        yield Finding(
            kind="launch-right",
            subject=name,
            text=f"is selected by Provisioner {', '.join(owners)} and carries no tag of the "
            "cluster: EC2 refuses to launch with it",
            command=f"aws ec2 create-tags --resources {name} "
            f"--tags Key={_DISCOVERY},Value={cluster}",
        )


def _selecting(cluster: str, template: NodeTemplate) -> NodeTemplate:
    """Return a template whose empty selectors select by the cluster's own tag."""
    own = tagged(f"kubernetes.io/cluster/{cluster}")
    return replace(
        template,
        subnet_selector=template.subnet_selector or own,
        security_group_selector=template.security_group_selector or own,
    )


def _is_usable(cluster: str, selected: SelectedResource, listed: Iterable[str]) -> bool:
    return (
        f"kubernetes.io/cluster/{cluster}" in selected.tags
        or selected.tags.get(_DISCOVERY) == cluster
        or selected.arn in listed
    )


def node_role_findings(
    cluster: str,
    attachment: AttachmentRoles,
    account: AccountPrerequisites,
    annotated: Callable[[str, str], str],
) -> Iterator[Finding]:
    """Yield what the network plugin lacks, and what pods can do with the node role.

    Args:
        annotated: Returns the role in the annotation of a service account, empty for none.
    """
    policies = account.node_policies(attachment.node_role)
    role = account.pod_role(*_PLUGIN) or annotated(*_PLUGIN)
    deploy = deploy_command(cluster, attachment.max_price_per_hour)
    if CNI_POLICY not in policies and not role:
        yield Finding(
            kind="cni-role",
            subject="aws-node",
            text=f"has no role of its own, and the node role has no {CNI_POLICY}: pods of new "
            "nodes get no address. Do not deploy with cni_role=own",
            command=f"{deploy} -c cni_role=node",
        )
    if CNI_POLICY in policies and role:
        yield Finding(
            kind="cni-role",
            subject="aws-node",
            text=f"has a role of its own ({role}): the node role needs no {CNI_POLICY}",
            command=f"{deploy} -c cni_role=own",
            advice=True,
        )
    if attachment.metadata_hop_limit > 1:
        yield _reach(cluster, attachment, policies, plugin_has_role=bool(role))


def _reach(
    cluster: str, attachment: AttachmentRoles, policies: Iterable[str], *, plugin_has_role: bool
) -> Finding:
    may = "; ".join(f"{_REACH.get(name, 'what it allows')} ({name})" for name in policies)
    deploy = deploy_command(cluster, attachment.max_price_per_hour)
    command = f"{deploy} -c metadata_hop_limit=1"
    if not plugin_has_role:
        may += "; aws-node has no role of its own, so cni_role=own would leave pods without address"
        command = (
            f"aws eks create-pod-identity-association --cluster-name {cluster} --namespace "
            "kube-system --service-account aws-node --role-arn <role with AmazonEKS_CNI_Policy>"
        )
    return Finding(
        kind="metadata-reach",
        subject=attachment.node_role.rsplit("/", 1)[-1],
        text=f"answers of the metadata service reach pods (hop limit "
        f"{attachment.metadata_hop_limit}), so each pod may: {may}",
        command=command,
        advice=True,
    )
