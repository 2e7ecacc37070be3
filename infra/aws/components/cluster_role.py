"""A role of one cluster: what the control plane becomes when it acts for that cluster."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.acknowledgements import allow
from infra.aws.functions import BY_RIGHT, Right
from infra.aws.names import cluster_role_name, function_role_arn


class ClusterRole(Construct):
    """The launch, terminate or inside role of a cluster, with its entry to the Kubernetes API.

    Attributes:
        role: The role, assumable by exactly the functions that need this right.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        cluster: str,
        right: Right,
        statements: Sequence[iam.PolicyStatement],
        entry_stands: bool = False,
    ) -> None:
        """Make it.

        Args:
            entry_stands: Whether the role's access entry exists outside the stack already:
                CloudFormation would fail with "already exists".
        """
        super().__init__(scope, f"{right.value.capitalize()}Role")
        stack = Stack.of(self)
        # Not as principals: IAM stores the id of a role that is named so, and a role that is
        # deleted and made again under its name has another one.
        # Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html
        # (2026-11).
        callers = [function_role_arn(stack, name) for name in BY_RIGHT[right]]
        self.role = iam.Role(
            self,
            "Role",
            role_name=cluster_role_name(cluster, right),
            assumed_by=iam.AccountRootPrincipal().with_conditions(
                {"ArnEquals": {"aws:PrincipalArn": callers}}
            ),
            description=f"Dovetail: {right.value} role of {cluster}",
        )
        allow(self.role, statements)
        if not entry_stands:
            eks.CfnAccessEntry(
                self,
                "AccessEntry",
                cluster_name=cluster,
                principal_arn=self.role.role_arn,
                kubernetes_groups=[right.kubernetes_group],
                type="STANDARD",
            )
