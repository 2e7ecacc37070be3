"""What a node may do: the role of the instances and the instance profile that contains it."""

from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.acknowledge import acknowledge, add_statements
from infra.aws.config import Config
from infra.aws.names import node_role_name

# What kubelets and image pulls need.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html (2026-11).
MANAGED_POLICIES: Final = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
# What the VPC network plugin needs where it has no role of its own.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-iam-role.html (2026-11).
CNI_POLICY: Final = "AmazonEKS_CNI_Policy"
# What a session needs, without access to parameters. These actions have no resource-level
# permissions, or only for the instance.
# Source:
# https://docs.aws.amazon.com/systems-manager/latest/userguide/getting-started-create-iam-instance-profile.html
# (2026-11).
SESSION_ACTIONS: Final = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)


class NodeProfile(Construct):
    """Role and instance profile of one cluster's nodes, of the same name.

    Attributes:
        role: The role.
        role_name: Its name.
        profile_name: Name of the instance profile.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: str, config: Config
    ) -> None:
        super().__init__(scope, construct_id)
        name = self.role_name = node_role_name(cluster)
        policies = [*MANAGED_POLICIES, *([CNI_POLICY] if config.cni_role == "node" else [])]
        self.role = iam.Role(
            self,
            "Role",
            role_name=name,
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            description=f"Nodes that Dovetail launches for {cluster}",
            managed_policies=[
                iam.ManagedPolicy.from_aws_managed_policy_name(policy) for policy in policies
            ],
        )
        for policy in policies:
            acknowledge(
                self.role,
                f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{policy}]",
                "nodes join and pull images with it"
                if policy in MANAGED_POLICIES
                else "pods get addresses with it until aws-node has a role of its own (cni_role)",
            )
        if config.ssm:
            add_statements(
                self.role,
                [
                    iam.PolicyStatement(
                        sid="OpenSessions",
                        actions=list(SESSION_ACTIONS),
                        resources=["*"],
                        conditions={"StringEquals": {"aws:RequestedRegion": Aws.REGION}},
                    )
                ],
            )
        profile = iam.CfnInstanceProfile(
            self, "Profile", instance_profile_name=name, roles=[self.role.role_name]
        )
        self.profile_name = profile.ref
