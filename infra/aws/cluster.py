"""The attachment stack: what the control plane needs for one EKS cluster."""

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra.aws.cluster_role_statements import (
    inside_statements,
    launch_statements,
    terminate_statements,
)
from infra.aws.components.cluster_alarms import ClusterAlarms
from infra.aws.components.cluster_role import ClusterRole
from infra.aws.components.dashboard import ClusterDashboard
from infra.aws.components.forwarder_identity import ForwarderIdentity
from infra.aws.components.migrate_role import MigrateRole
from infra.aws.components.node_profile import NodeProfile
from infra.aws.config import Config
from infra.aws.forwarder_image import forwarder_image
from infra.aws.functions import ClusterRoleKind
from infra.aws.names import PARAMETERS, role_arn


class ClusterStack(Stack):
    """Roles, access entries, instance profile, forwarder identity, alarms and the attachment."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: str,
        config: Config,
        **options: Any,
    ) -> None:
        super().__init__(
            scope, construct_id, description=f"Dovetail: attaches cluster {cluster}", **options
        )
        nodes = NodeProfile(self, "Nodes", cluster=cluster, config=config)
        existing_entries = {
            kind for name, kind in config.existing_access_entries if name == cluster
        }
        if "nodes" not in existing_entries:
            eks.CfnAccessEntry(
                self,
                "NodesAccessEntry",
                cluster_name=cluster,
                principal_arn=nodes.role.role_arn,
                type="EC2_LINUX",
            )
        own_roles = [role for name, role in config.node_roles if name == cluster]
        own = [role_arn(self, role) for role in own_roles]
        for number, arn in enumerate(() if "own-nodes" in existing_entries else own):
            eks.CfnAccessEntry(
                self,
                f"OwnNodesAccessEntry{number}",
                cluster_name=cluster,
                principal_arn=arn,
                type="EC2_LINUX",
            )
        launch = ClusterRole(
            self,
            cluster=cluster,
            kind=ClusterRoleKind.LAUNCH,
            statements=launch_statements(
                self,
                cluster,
                node_role_arns=[nodes.role.role_arn, *own],
                config=config,
            ),
            has_access_entry=ClusterRoleKind.LAUNCH.value in existing_entries,
        )
        terminate = ClusterRole(
            self,
            cluster=cluster,
            kind=ClusterRoleKind.TERMINATE,
            statements=terminate_statements(self, cluster),
            has_access_entry=ClusterRoleKind.TERMINATE.value in existing_entries,
        )
        inside = ClusterRole(
            self,
            cluster=cluster,
            kind=ClusterRoleKind.INSIDE,
            statements=inside_statements(self, cluster),
            has_access_entry=ClusterRoleKind.INSIDE.value in existing_entries,
        )
        forwarder = ForwarderIdentity(self, "Forwarder", cluster=cluster)
        # The fields of shared.settings.ClusterAttachment.
        attachment = {
            "name": cluster,
            "launch_role": launch.role.role_arn,
            "terminate_role": terminate.role.role_arn,
            "inside_role": inside.role.role_arn,
            "instance_profile": nodes.profile_name,
            "node_profiles": {nodes.role_name: nodes.profile_name, **self._profiles(own_roles)},
            "launch_resources": [arn for name, arn in config.launch_resources if name == cluster],
            "own_images": config.own_images,
            "metadata_tokens": config.metadata_tokens,
            "metadata_hop_limit": config.metadata_hop_limit,
            "preference_policy": config.preference_policy,
            "drift": cluster in config.drift,
            "brakes": {"max_price_per_hour": dict(config.max_price_per_hour)[cluster]},
            "forwarder_image": forwarder_image(self, config.forwarder_image),
        }
        migrators = [arn for name, arn in config.migrators if name == cluster]
        if migrators:
            migrate = MigrateRole(self, cluster=cluster, migrators=migrators)
            attachment["migrate_role"] = migrate.role.role_arn
        ssm.StringParameter(
            self,
            "Attachment",
            parameter_name=f"{PARAMETERS}/{cluster}",
            description=f"How Dovetail acts for cluster {cluster}",
            string_value=self.to_json_string(attachment),
            # Up to 4 KB are free; many `launch_resources` make it longer: $0.05 a month.
            # Source: https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html
            # (2026-11).
            tier=ssm.ParameterTier.INTELLIGENT_TIERING,
        )
        ClusterAlarms(self, "Alarms", cluster=cluster, topic_arn=config.alarm_topic)
        ClusterDashboard(self, "Dashboard", cluster=cluster)
        CfnOutput(self, "InstanceProfile", value=nodes.profile_name)
        CfnOutput(self, "ForwarderRole", value=forwarder.role.role_arn)

    def _profiles(self, roles: list[str]) -> dict[str, str]:
        """Create an instance profile for each role of the user's; return their names by role.

        An EC2NodeClass names a role. The functions may create neither roles nor profiles.
        """
        return {
            role: iam.CfnInstanceProfile(self, f"OwnNodesProfile{number}", roles=[role]).ref
            for number, role in enumerate(roles)
        }
