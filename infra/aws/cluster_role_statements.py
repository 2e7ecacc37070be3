"""What the roles of one cluster may do in EC2, bound to tags that name the cluster.

Instances, fleets and launch templates are tagged when they are created, and only those with the
tags can be used or terminated. EC2 checks the tags of every resource that a call creates.

A launch uses subnets, security groups, snapshots, key pairs, placement groups and capacity
reservations only if they carry a tag of the cluster (`kubernetes.io/cluster/<name>` with any value,
or `karpenter.sh/discovery=<name>`) or are listed; of the account's own images those with such a
tag, or all. The reference below has the condition key `aws:ResourceTag` for each of these types and
for images, `ec2:Owner` for images and snapshots, and `ec2:MetadataHttpTokens` and
`ec2:MetadataHttpPutResponseHopLimit` for instances of RunInstances. Network interfaces and volumes
have request tags only, so an existing network interface can only be listed. Images and snapshots
have no account in their ARN.

CreateFleet is checked for fewer resource types than the RunInstances calls that EC2 makes for it;
each statement has the types of its action (`make aws-judges` compares them with AWS's reference).

Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
(2026-11).
"""

from collections.abc import Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam

from infra.aws.config import Config
from infra.aws.names import cluster_arn

CLUSTER_TAG = "dovetail.dev/cluster"
PROVISIONER_TAG = "karpenter.sh/provisioner-name"
EKS_CLUSTER_TAG = "eks:eks-cluster-name"
# Tags by which Dovetail and Karpenter v1 find their instances; a test compares the migration's.
OWNER_TAGS = (
    CLUSTER_TAG,
    "dovetail.dev/attempt",
    "dovetail.dev/group",
    "dovetail.dev/nodepool",
    "dovetail.dev/plan",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.sh/nodeclaim",
    "karpenter.sh/nodepool",
    PROVISIONER_TAG,
)

# What a launch creates and its request tags. The statements for fleet and instance refuse a request
# without the tags, and the others exist only with an instance.
TAGGED = ("fleet", "instance", "network-interface", "spot-instances-request", "volume")
_LAUNCH = ["ec2:CreateFleet", "ec2:RunInstances"]
DISCOVERY_TAG = "karpenter.sh/discovery"
# What a launch uses but does not create: the action, how the ids of its statements begin, and the
# resource types that the action is checked for.
USES = (
    ("ec2:CreateFleet", "AskInto", ("capacity-reservation", "placement-group", "subnet")),
    (
        "ec2:RunInstances",
        "LaunchInto",
        (
            "capacity-reservation",
            "key-pair",
            "placement-group",
            "security-group",
            "snapshot",
            "subnet",
        ),
    ),
)
# There is no condition key for the tags of an existing one.
LISTED_ONLY = "network-interface"


def launch_statements(
    stack: Stack,
    cluster: str,
    *,
    node_role_arns: Sequence[str],
    config: Config,
) -> list[iam.PolicyStatement]:
    """Return what the launch role may do; it may not terminate instances."""
    of_cluster = _request_tags(cluster)
    images = [_ec2(stack, "image")]
    return [
        # CreateFleet has no condition keys for metadata options; each instance is checked instead.
        iam.PolicyStatement(
            sid="LaunchTaggedMachines",
            actions=["ec2:RunInstances"],
            resources=[_ec2(stack, "instance")],
            conditions={
                "StringEquals": {**of_cluster, **_tokens(config)},
                "StringLike": {f"aws:RequestTag/{PROVISIONER_TAG}": "*"},
                "NumericLessThanEquals": {
                    "ec2:MetadataHttpPutResponseHopLimit": str(config.metadata_hop_limit)
                },
            },
        ),
        iam.PolicyStatement(
            sid="AskForTaggedFleets",
            actions=["ec2:CreateFleet"],
            resources=[_ec2(stack, kind) for kind in ("fleet", "instance", "volume")],
            conditions={"StringEquals": of_cluster},
        ),
        iam.PolicyStatement(
            sid="LaunchFromOurTemplates",
            actions=_LAUNCH,
            resources=[_ec2(stack, "launch-template")],
            conditions={"StringEquals": _resource_tags(cluster)},
        ),
        # The owner of the image is checked for each instance.
        iam.PolicyStatement(sid="AskForImages", actions=["ec2:CreateFleet"], resources=images),
        iam.PolicyStatement(
            sid="LaunchFromTrustedImages",
            actions=["ec2:RunInstances"],
            resources=images,
            conditions={"StringEquals": {"ec2:Owner": _trusted(config)}},
        ),
        *_own_image_statements(cluster, images, config),
        *_use_statements(stack, cluster, config),
        iam.PolicyStatement(
            sid="MakeTemplates",
            actions=["ec2:CreateLaunchTemplate"],
            resources=[_ec2(stack, "launch-template")],
            conditions={"StringEquals": of_cluster},
        ),
        iam.PolicyStatement(
            sid="TagWhatIsLaunched",
            actions=["ec2:CreateTags"],
            resources=[_ec2(stack, kind) for kind in TAGGED],
            conditions={
                "StringEquals": {
                    **of_cluster,
                    "ec2:CreateAction": ["CreateFleet", "RunInstances"],
                }
            },
        ),
        iam.PolicyStatement(
            sid="TagTemplates",
            actions=["ec2:CreateTags"],
            resources=[_ec2(stack, "launch-template")],
            conditions={"StringEquals": {**of_cluster, "ec2:CreateAction": "CreateLaunchTemplate"}},
        ),
        iam.PolicyStatement(
            sid="GiveMachinesTheirRole",
            actions=["iam:PassRole"],
            resources=list(node_role_arns),
            conditions={
                "StringEquals": {
                    "iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
                }
            },
        ),
        iam.PolicyStatement(
            sid="FindImages",
            actions=["ssm:GetParameters"],
            resources=[
                stack.format_arn(
                    service="ssm", account="", resource="parameter", resource_name="aws/service/*"
                ),
                *(arn for name, arn in config.image_parameters if name == cluster),
            ],
        ),
        _read(
            "ec2:DescribeImages",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
        ),
        _find_endpoint(stack, cluster),
        *_key_statements(config.kms_keys),
    ]


def _own_image_statements(
    cluster: str, images: Sequence[str], config: Config
) -> list[iam.PolicyStatement]:
    """Return which of the account's own images may be launched: one holds an instance's disks.

    AWS Backup stores instances as images. Each condition has the owner: anybody may tag their own.
    """
    own = {"ec2:Owner": Aws.ACCOUNT_ID}
    if config.own_images == "all":
        conditions = {"LaunchFromOwnImages": {"StringEquals": own}}
    else:
        tag = f"aws:ResourceTag/kubernetes.io/cluster/{cluster}"
        conditions = {
            "LaunchFromTaggedImages": {"StringEquals": own, "StringLike": {tag: "*"}},
            "LaunchFromDiscoveredImages": {
                "StringEquals": {**own, f"aws:ResourceTag/{DISCOVERY_TAG}": cluster}
            },
        }
    return [
        iam.PolicyStatement(
            sid=sid, actions=["ec2:RunInstances"], resources=list(images), conditions=condition
        )
        for sid, condition in conditions.items()
    ]


def _use_statements(stack: Stack, cluster: str, config: Config) -> list[iam.PolicyStatement]:
    """Return what a launch may use, by tag of the resource, by tag of the request, or by name."""
    # Keys of one statement must all hold, so each tag has a statement of its own.
    conditions_by_tag = {
        "Tagged": {"StringLike": {f"aws:ResourceTag/kubernetes.io/cluster/{cluster}": "*"}},
        "Discovered": {"StringEquals": {f"aws:ResourceTag/{DISCOVERY_TAG}": cluster}},
    }
    statements = [
        iam.PolicyStatement(
            sid=f"{sid_prefix}{tag}",
            actions=[action],
            resources=[_ec2(stack, kind) for kind in kinds],
            conditions=conditions,
        )
        for action, sid_prefix, kinds in USES
        for tag, conditions in conditions_by_tag.items()
    ]
    listed = [arn for name, arn in config.launch_resources if name == cluster]
    for action, sid_prefix, kinds in USES:
        known = (*kinds, LISTED_ONLY) if action == "ec2:RunInstances" else kinds
        if resources := [arn for arn in listed if _kind(arn) in known]:
            statements.append(
                iam.PolicyStatement(
                    sid=f"{sid_prefix}Listed", actions=[action], resources=resources
                )
            )
    return [
        *statements,
        iam.PolicyStatement(
            sid="LaunchFromTrustedSnapshots",
            actions=["ec2:RunInstances"],
            resources=[_ec2(stack, "snapshot")],
            conditions={"StringEquals": {"ec2:Owner": _trusted(config)}},
        ),
        iam.PolicyStatement(
            sid="MakeInterfacesAndVolumes",
            actions=["ec2:RunInstances"],
            resources=[_ec2(stack, "network-interface"), _ec2(stack, "volume")],
            conditions={"StringEquals": _request_tags(cluster)},
        ),
        iam.PolicyStatement(
            sid="AskForSpot",
            actions=["ec2:RunInstances"],
            resources=[_ec2(stack, "spot-instances-request")],
        ),
    ]


def _kind(arn: str) -> str:
    """Return the resource type of an ARN of EC2."""
    return arn.rpartition(":")[2].partition("/")[0]


def _trusted(config: Config) -> list[str]:
    """Return the owners of images and snapshots that are trusted without a tag."""
    return ["amazon", *config.image_owners]


def _tokens(config: Config) -> dict[str, str]:
    required = {"ec2:MetadataHttpTokens": "required"}
    return required if config.metadata_tokens == "required" else {}


def _key_statements(keys: Sequence[str]) -> list[iam.PolicyStatement]:
    """Return what EC2 needs of customer managed keys to make and attach encrypted volumes.

    EC2 calls KMS with the permissions of the caller, and only then.
    Source: https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption-requirements.html
    (2026-11).
    """
    if not keys:
        return []
    by_ec2 = {"kms:ViaService": f"ec2.{Aws.REGION}.amazonaws.com"}
    return [
        iam.PolicyStatement(
            sid="EncryptVolumes",
            actions=[
                "kms:Decrypt",
                "kms:DescribeKey",
                "kms:GenerateDataKeyWithoutPlaintext",
                "kms:ReEncryptFrom",
                "kms:ReEncryptTo",
            ],
            resources=list(keys),
            conditions={"StringEquals": by_ec2},
        ),
        iam.PolicyStatement(
            sid="GrantKeysToVolumes",
            actions=["kms:CreateGrant"],
            resources=list(keys),
            conditions={"StringEquals": by_ec2, "Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
    ]


def terminate_statements(stack: Stack, cluster: str) -> list[iam.PolicyStatement]:
    """Return what the terminate role may do; it may not launch instances."""
    return [
        iam.PolicyStatement(
            sid="EndOurs",
            actions=["ec2:TerminateInstances"],
            resources=[_ec2(stack, "instance")],
            conditions={
                "StringEquals": _resource_tags(cluster),
                "StringLike": {f"aws:ResourceTag/{PROVISIONER_TAG}": "*"},
            },
        ),
        iam.PolicyStatement(
            sid="DropOurTemplates",
            actions=["ec2:DeleteLaunchTemplate"],
            resources=[_ec2(stack, "launch-template")],
            conditions={"StringEquals": _resource_tags(cluster)},
        ),
        _read("ec2:DescribeInstances", "ec2:DescribeLaunchTemplates"),
        _find_endpoint(stack, cluster),
    ]


def migrate_statements(stack: Stack, cluster: str) -> list[iam.PolicyStatement]:
    """Return what the migrate role may do: give instances of the cluster other owners' tags.

    Karpenter and Dovetail both tag instances as owned by the cluster. Only the tags by which they
    find their instances can be changed, and no tag can name another cluster. A DeleteTags call that
    names no tag would delete all.

    Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
    and https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteTags.html (2026-11).
    """
    of_cluster = {f"aws:ResourceTag/kubernetes.io/cluster/{cluster}": "owned"}
    instances = [_ec2(stack, "instance")]
    return [
        iam.PolicyStatement(
            sid="TagForAnotherOwner",
            actions=["ec2:CreateTags"],
            resources=instances,
            conditions={
                "StringEquals": of_cluster,
                "StringEqualsIfExists": {
                    f"aws:RequestTag/{CLUSTER_TAG}": cluster,
                    f"aws:RequestTag/{EKS_CLUSTER_TAG}": cluster,
                },
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": sorted({*OWNER_TAGS, EKS_CLUSTER_TAG})
                },
                "Null": {"aws:TagKeys": "false"},
            },
        ),
        iam.PolicyStatement(
            sid="UntagForAnotherOwner",
            actions=["ec2:DeleteTags"],
            resources=instances,
            conditions={
                "StringEquals": of_cluster,
                "ForAllValues:StringEquals": {"aws:TagKeys": list(OWNER_TAGS)},
                "Null": {"aws:TagKeys": "false"},
            },
        ),
    ]


def inside_statements(stack: Stack, cluster: str) -> list[iam.PolicyStatement]:
    """Return what the inside role may do: find the cluster, and see whether instances run."""
    return [_read("ec2:DescribeInstances"), _find_endpoint(stack, cluster)]


def _request_tags(cluster: str) -> dict[str, str]:
    return {
        f"aws:RequestTag/{CLUSTER_TAG}": cluster,
        f"aws:RequestTag/kubernetes.io/cluster/{cluster}": "owned",
    }


def _resource_tags(cluster: str) -> dict[str, str]:
    return {
        f"aws:ResourceTag/{CLUSTER_TAG}": cluster,
        f"aws:ResourceTag/kubernetes.io/cluster/{cluster}": "owned",
    }


def _ec2(stack: Stack, kind: str) -> str:
    account = "" if kind in ("image", "snapshot") else None
    return stack.format_arn(service="ec2", account=account, resource=kind, resource_name="*")


def _read(*actions: str) -> iam.PolicyStatement:
    """Allow describe actions in this Region; they have no resource-level permissions."""
    return iam.PolicyStatement(
        sid="Look",
        actions=list(actions),
        resources=["*"],
        conditions={"StringEquals": {"aws:RequestedRegion": Aws.REGION}},
    )


def _find_endpoint(stack: Stack, cluster: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="FindEndpoint",
        actions=["eks:DescribeCluster"],
        resources=[cluster_arn(stack, cluster)],
    )
