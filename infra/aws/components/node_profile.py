"""What a node may do: the role of the machines and the instance profile that carries it."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.acknowledgements import acknowledge
from infra.aws.names import node_role_name

# What a kubelet, the VPC network plugin, image pulls and a session of the operator need.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html (2026-08).
MANAGED_POLICIES = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)


class NodeProfile(Construct):
    """Role and instance profile of one cluster's nodes, of the same name.

    Attributes:
        role: The role.
        profile_name: Name of the instance profile.
    """

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str) -> None:
        super().__init__(scope, construct_id)
        name = node_role_name(cluster)
        self.role = iam.Role(
            self,
            "Role",
            role_name=name,
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            description=f"Nodes that Dovetail launches for {cluster}",
            managed_policies=[
                iam.ManagedPolicy.from_aws_managed_policy_name(policy)
                for policy in MANAGED_POLICIES
            ],
        )
        for policy in MANAGED_POLICIES:
            acknowledge(
                self.role,
                f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{policy}]",
                "EKS maintains what a node needs in these policies",
            )
        profile = iam.CfnInstanceProfile(
            self, "Profile", instance_profile_name=name, roles=[self.role.role_name]
        )
        self.profile_name = profile.ref
