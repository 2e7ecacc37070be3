"""Names that several parts must agree on without referring to each other.

Functions start state machines and state machines call functions; the cluster stacks trust roles
of the control plane. Names that are fixed here break those circles: every ARN can be written
without a reference to the resource itself.
"""

import hashlib
from typing import Final

from aws_cdk import ArnFormat, Aws, Stack

from infra.aws.functions import ClusterRoleKind, TimerStateMachine

BUS: Final = "dovetail"
# The metrics of a rule are found by its name; `Ref` of a rule on a custom bus is `<bus>|<name>`.
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-events-rule.html
# (Return values, 2026-11).
HEARTBEAT_RULE: Final = "dovetail-heartbeat"
# The kinds of messages that forwarders may send; a test compares it with the messages.
FORWARDED: Final = (
    "heartbeat",
    "node-deleted",
    "node-empty",
    "node-ready",
    "pod-pending",
    "provisioner-changed",
)
PARAMETERS: Final = "/dovetail/clusters"
METRICS_NAMESPACE: Final = "Dovetail"
CONTROL_PLANE_STACK: Final = "DovetailControlPlane"
FORWARDER_NAMESPACE: Final = "dovetail"
FORWARDER_ACCOUNT: Final = "dovetail-forwarder"

# A role name has 64 characters: "Dovetail-" + cluster + "-" + Region + "-terminate"; the longest
# name of a Region has 14 characters (ap-northeast-1).
_CLUSTER_IN_ROLE: Final = 64 - len("Dovetail-") - 1 - 14 - len("-terminate")


def construct_name(name: str) -> str:
    """Return the construct's name for a function, as in `RefreshCatalog`."""
    return "".join(word.capitalize() for word in name.split("_"))


def function_name(name: str) -> str:
    """Return the name of a Lambda function, as in `dovetail-refresh-catalog`."""
    return f"dovetail-{name.replace('_', '-')}"


def function_role_name(name: str) -> str:
    """Return the name of the role a function runs under (roles are shared by all Regions)."""
    return f"Dovetail-{Aws.REGION}-{name.replace('_', '-')}"


def function_arn(stack: Stack, name: str) -> str:
    """Return the ARN of one of Dovetail's functions."""
    return stack.format_arn(
        service="lambda",
        resource="function",
        resource_name=function_name(name),
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


def function_role_arn(stack: Stack, name: str) -> str:
    """Return the ARN of the role of one of Dovetail's functions."""
    return role_arn(stack, function_role_name(name))


def state_machine_arn(stack: Stack, state_machine: TimerStateMachine) -> str:
    """Return the ARN of the state machine of a timer."""
    return stack.format_arn(
        service="states",
        resource="stateMachine",
        resource_name=state_machine.machine_name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


def role_arn(stack: Stack, name: str) -> str:
    """Return the ARN of a role; IAM has no Region."""
    return stack.format_arn(service="iam", region="", resource="role", resource_name=name)


def bus_arn(stack: Stack) -> str:
    """Return the ARN of the bus."""
    return stack.format_arn(service="events", resource="event-bus", resource_name=BUS)


def cluster_arn(stack: Stack, cluster: str) -> str:
    """Return the ARN of an EKS cluster of this account and Region."""
    return stack.format_arn(service="eks", resource="cluster", resource_name=cluster)


def cluster_role_name(cluster: str, kind: ClusterRoleKind) -> str:
    """Return the name of a cluster's role of one kind.

    Clusters in two Regions of an account may have the same name, so the Region is part of it.
    """
    return f"Dovetail-{_shortened(cluster)}-{Aws.REGION}-{kind.value}"


def migrate_role_name(cluster: str) -> str:
    """Return the name of the role that changes tags of a cluster's instances for a migration."""
    return f"Dovetail-{_shortened(cluster)}-{Aws.REGION}-migrate"


def cluster_roles_pattern(stack: Stack, kind: ClusterRoleKind) -> str:
    """Return a pattern for the ARNs of all clusters' roles of one kind in this Region."""
    return role_arn(stack, f"Dovetail-*-{Aws.REGION}-{kind.value}")


def node_role_name(cluster: str) -> str:
    """Return the name of a cluster's node role and of its instance profile."""
    return f"DovetailNode-{_shortened(cluster)}-{Aws.REGION}"


def cluster_stack_name(cluster: str) -> str:
    """Return the name of a cluster's stack; stack names have no underscores."""
    return f"DovetailCluster-{cluster.replace('_', '-')}"


def _shortened(cluster: str) -> str:
    if len(cluster) <= _CLUSTER_IN_ROLE:
        return cluster
    digest = hashlib.sha256(cluster.encode()).hexdigest()[:8]
    return f"{cluster[: _CLUSTER_IN_ROLE - 9]}-{digest}"
