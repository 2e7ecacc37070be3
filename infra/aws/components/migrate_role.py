"""The role that changes tags of a cluster's instances, for as long as a migration takes."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.acknowledge import add_statements
from infra.aws.cluster_role_statements import migrate_statements
from infra.aws.names import migrate_role_name


class MigrateRole(Construct):
    """A role that users assume by `dovetail migrate`; a deployment without `migrators` removes it.

    Attributes:
        role: The role; no function may assume it, and it has no access entry.
    """

    def __init__(self, scope: Construct, *, cluster: str, migrators: Sequence[str]) -> None:
        """Create the role.

        Args:
            migrators: ARNs of the roles and users that may assume it.
        """
        super().__init__(scope, "MigrateRole")
        # Not as principals, as for the other roles of the cluster.
        self.role = iam.Role(
            self,
            "Role",
            role_name=migrate_role_name(cluster),
            assumed_by=iam.AccountRootPrincipal().with_conditions(
                {"ArnEquals": {"aws:PrincipalArn": list(migrators)}}
            ),
            description=f"Dovetail: changes tags of instances of {cluster} for a migration",
        )
        add_statements(self.role, migrate_statements(Stack.of(self), cluster))
