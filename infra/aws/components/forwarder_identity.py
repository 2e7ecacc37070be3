"""The forwarder's identity in AWS: a role for its service account that may send to one bus."""

from aws_cdk import Aws, Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.acknowledge import add_statements
from infra.aws.names import FORWARDED, FORWARDER_ACCOUNT, FORWARDER_NAMESPACE, bus_arn, cluster_arn


class ForwarderIdentity(Construct):
    """EKS Pod Identity of one cluster's forwarder.

    Attributes:
        role: The role.
    """

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        # The agent passes these session tags, so no other service account can get the role.
        # Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html (2026-08).
        agent = iam.ServicePrincipal(
            "pods.eks.amazonaws.com",
            conditions={
                "StringEquals": {
                    "aws:SourceAccount": Aws.ACCOUNT_ID,
                    "aws:RequestTag/eks-cluster-arn": cluster_arn(stack, cluster),
                    "aws:RequestTag/eks-cluster-name": cluster,
                    "aws:RequestTag/kubernetes-namespace": FORWARDER_NAMESPACE,
                    "aws:RequestTag/kubernetes-service-account": FORWARDER_ACCOUNT,
                }
            },
        ).with_session_tags()
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=agent,
            description=f"Sends events of the forwarder in {cluster} to the bus",
        )
        add_statements(
            self.role,
            [
                iam.PolicyStatement(
                    sid="Tell",
                    actions=["events:PutEvents"],
                    resources=[bus_arn(stack)],
                    # The keys have the source and detail type of each entry of a call: multivalued
                    # keys, for which ForAllValues also matches when they are absent. Source:
                    # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoneventbridge.html
                    # and https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
                    # (2026-11).
                    conditions={
                        "ForAllValues:StringEquals": {
                            "events:source": f"dovetail.{cluster}",
                            "events:detail-type": list(FORWARDED),
                        },
                        "Null": {"events:source": "false", "events:detail-type": "false"},
                    },
                )
            ],
        )
        eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster,
            namespace=FORWARDER_NAMESPACE,
            service_account=FORWARDER_ACCOUNT,
            role_arn=self.role.role_arn,
        )
