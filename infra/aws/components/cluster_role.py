"""A role of one cluster, which the control plane assumes to act on that cluster."""

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.acknowledge import add_statements
from infra.aws.functions import FUNCTIONS_BY_ROLE, ClusterRoleKind
from infra.aws.names import cluster_role_name, function_role_arn

_PURPOSES: Final[Mapping[ClusterRoleKind, str]] = {
    ClusterRoleKind.INSIDE: "Binds pods and changes Nodes, but nothing in EC2,",
    ClusterRoleKind.LAUNCH: "Launches instances, creates Nodes and binds pods",
    ClusterRoleKind.TERMINATE: "Evicts pods, deletes Nodes and terminates instances",
}


class ClusterRole(Construct):
    """The launch, terminate or inside role of a cluster, with its access entry.

    Attributes:
        role: The role, assumable by exactly the functions that need it.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        cluster: str,
        kind: ClusterRoleKind,
        statements: Sequence[iam.PolicyStatement],
        has_access_entry: bool = False,
    ) -> None:
        """Create the role.

        Args:
            has_access_entry: Whether the role's access entry already exists outside the stack:
                CloudFormation would fail with "already exists".
        """
        super().__init__(scope, f"{kind.value.capitalize()}Role")
        stack = Stack.of(self)
        # Not as principals: IAM stores the id of a role that is named so, and a role that is
        # recreated under the same name has another id.
        # Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html
        # (2026-11).
        callers = [function_role_arn(stack, name) for name in FUNCTIONS_BY_ROLE[kind]]
        self.role = iam.Role(
            self,
            "Role",
            role_name=cluster_role_name(cluster, kind),
            assumed_by=iam.AccountRootPrincipal().with_conditions(
                {"ArnEquals": {"aws:PrincipalArn": callers}}
            ),
            description=f"{_PURPOSES[kind]} for {cluster}",
        )
        add_statements(self.role, statements)
        if not has_access_entry:
            eks.CfnAccessEntry(
                self,
                "AccessEntry",
                cluster_name=cluster,
                principal_arn=self.role.role_arn,
                kubernetes_groups=[kind.kubernetes_group],
                type="STANDARD",
            )
