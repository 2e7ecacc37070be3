"""The statements of the functions' roles, smallest that work."""

from collections.abc import Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from infra.aws.functions import FunctionPlan
from infra.aws.names import (
    PARAMETERS,
    cluster_roles_pattern,
    construct_name,
    function_arn,
    machine_arn,
    role_arn,
)
from shared.settings import LINKED_ROLES

DECISIONS: str = "decisions/*"
BASES: str = "bases/*"
LAUNCHES: str = "launches/*"
CATALOGUE: str = "catalog/*"
COPIES: str = "copies/*"


def ledger_statements(table: dynamodb.ITable) -> list[iam.PolicyStatement]:
    """Allow what single rows and transactions need; scans are not among it."""
    return [
        iam.PolicyStatement(
            sid="Ledger",
            actions=[
                "dynamodb:ConditionCheckItem",
                "dynamodb:DeleteItem",
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
            ],
            resources=[table.table_arn],
        )
    ]


def bucket_statements(plan: FunctionPlan, bucket: s3.IBucket) -> list[iam.PolicyStatement]:
    """Allow decisions and launches to be kept and the catalogue read, or the catalogue written."""
    statements = []
    if plan.keeps_decisions:
        statements += [
            iam.PolicyStatement(
                sid="Decisions",
                actions=["s3:GetObject", "s3:PutObject"],
                resources=[bucket.arn_for_objects(value) for value in (DECISIONS, BASES, LAUNCHES)],
            ),
            iam.PolicyStatement(
                sid="ReadCatalogue",
                actions=["s3:GetObject"],
                resources=[bucket.arn_for_objects(CATALOGUE)],
            ),
            # Without it a key that does not exist is answered by "access denied".
            iam.PolicyStatement(
                sid="TellMissingKeys",
                actions=["s3:ListBucket"],
                resources=[bucket.bucket_arn],
                conditions={"StringLike": {"s3:prefix": [DECISIONS, BASES, LAUNCHES, CATALOGUE]}},
            ),
        ]
    if plan.takes_copies:
        put = ["s3:PutObject"] if plan.leaves_copies else []
        statements += [
            iam.PolicyStatement(
                sid="Copies",
                actions=["s3:GetObject", *put],
                resources=[bucket.arn_for_objects(COPIES)],
            ),
            iam.PolicyStatement(
                sid="TellMissingCopies",
                actions=["s3:ListBucket"],
                resources=[bucket.bucket_arn],
                conditions={"StringLike": {"s3:prefix": [COPIES]}},
            ),
        ]
    if plan.writes_catalogue:
        statements.append(
            iam.PolicyStatement(
                sid="WriteCatalogue",
                actions=["s3:PutObject"],
                resources=[bucket.arn_for_objects(CATALOGUE)],
            )
        )
        # Whether there is one, and how old it is.
        statements.append(
            iam.PolicyStatement(
                sid="ReadCatalogue",
                actions=["s3:GetObject"],
                resources=[bucket.arn_for_objects(CATALOGUE)],
            )
        )
        statements.append(
            iam.PolicyStatement(
                sid="TellMissingKeys",
                actions=["s3:ListBucket"],
                resources=[bucket.bucket_arn],
                conditions={"StringLike": {"s3:prefix": [CATALOGUE]}},
            )
        )
    return statements


def queue_statements(
    plan: FunctionPlan, wake_queue: sqs.IQueue, dead_letters: sqs.IQueue
) -> list[iam.PolicyStatement]:
    """Allow records that cannot be understood to be put aside, and wake-ups to be sent."""
    statements = [
        iam.PolicyStatement(
            sid="PutAside", actions=["sqs:SendMessage"], resources=[dead_letters.queue_arn]
        )
    ]
    if plan.wakes:
        statements.append(
            iam.PolicyStatement(
                sid="Wake", actions=["sqs:SendMessage"], resources=[wake_queue.queue_arn]
            )
        )
    if plan.woken:
        statements.append(
            iam.PolicyStatement(
                sid="TakeWakeUps",
                actions=["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
                resources=[wake_queue.queue_arn],
            )
        )
    return statements


def cluster_statements(plan: FunctionPlan, stack: Stack) -> list[iam.PolicyStatement]:
    """Allow the attached clusters to be found and their role of one kind to be assumed."""
    if plan.right is None and not plan.finds_clusters:
        return []
    path = PARAMETERS.removeprefix("/")
    statements = [
        iam.PolicyStatement(
            sid="FindClusters",
            # By its name the parameter with the brakes of a cluster that is called.
            actions=[*(["ssm:GetParameter"] if plan.right else []), "ssm:GetParametersByPath"],
            resources=[
                stack.format_arn(service="ssm", resource="parameter", resource_name=name)
                for name in (path, *([f"{path}/*"] if plan.right else []))
            ],
        )
    ]
    if plan.right is not None:
        statements.append(
            iam.PolicyStatement(
                sid="AssumeClusterRole",
                actions=["sts:AssumeRole"],
                resources=[cluster_roles_pattern(stack, plan.right)],
            )
        )
    return statements


def start_statements(plan: FunctionPlan, stack: Stack) -> list[iam.PolicyStatement]:
    """Allow timers to be started, and functions to be invoked."""
    statements = []
    if plan.starts:
        statements.append(
            iam.PolicyStatement(
                sid="StartTimers",
                actions=["states:StartExecution"],
                resources=[machine_arn(stack, timer) for timer in plan.starts],
            )
        )
    statements += [
        iam.PolicyStatement(
            sid=f"Invoke{construct_name(name)}",
            actions=["lambda:InvokeFunction"],
            resources=[function_arn(stack, name)],
        )
        for name in plan.invokes
    ]
    return statements


def catalogue_statements(plan: FunctionPlan, stack: Stack) -> list[iam.PolicyStatement]:
    """Allow offers and prices to be read, and the service-linked roles of EC2 to be made.

    The actions that read know no resource.
    """
    if not plan.writes_catalogue:
        return []
    return [
        iam.PolicyStatement(
            sid="ReadOffers",
            actions=[
                "ec2:DescribeInstanceTypeOfferings",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeSpotPriceHistory",
            ],
            resources=["*"],
            conditions={"StringEquals": {"aws:RequestedRegion": Aws.REGION}},
        ),
        iam.PolicyStatement(
            sid="FindLinkedRoles", actions=["iam:GetRole"], resources=_linked_roles(stack)
        ),
        # The role of a service that is named, and none other: what it may do is the service's.
        iam.PolicyStatement(
            sid="MakeLinkedRoles",
            actions=["iam:CreateServiceLinkedRole"],
            resources=_linked_roles(stack),
            conditions={"StringEquals": {"iam:AWSServiceName": sorted(LINKED_ROLES.values())}},
        ),
        # The price list has endpoints in a few Regions only, so no Region can be asked for.
        iam.PolicyStatement(sid="ReadPrices", actions=["pricing:GetProducts"], resources=["*"]),
    ]


def _linked_roles(stack: Stack) -> list[str]:
    return [
        role_arn(stack, f"aws-service-role/{service}/{name}")
        for name, service in sorted(LINKED_ROLES.items())
    ]


def log_statements(log_group_arn: str) -> list[iam.PolicyStatement]:
    """Allow lines to be written to the function's own log group; it exists already.

    Not to create one: Lambda copies lines minutes after an invocation, and with that right would
    make a log group again that was deleted with the stack.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html and
    https://github.com/aws/aws-cdk/issues/32689 (2026-11).
    """
    return [
        iam.PolicyStatement(
            sid="Log",
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[log_group_arn],
        )
    ]


def interface_statements(
    plan: FunctionPlan, stack: Stack, subnets: Sequence[str], security_groups: Sequence[str]
) -> list[iam.PolicyStatement]:
    """Allow Lambda to give a function its network interfaces, and the function's code not.

    Lambda makes them under the function's role; only calls of the code itself carry the function's
    ARN, so those are refused.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html (2026-08), which
    also says that interfaces are described on all resources.
    """
    if not subnets:
        return []
    interfaces = _ec2(stack, "network-interface", "*")
    named = [
        *(_ec2(stack, "subnet", subnet) for subnet in subnets),
        *(_ec2(stack, "security-group", security_group) for security_group in security_groups),
    ]
    release = [
        "ec2:AssignPrivateIpAddresses",
        "ec2:DeleteNetworkInterface",
        "ec2:UnassignPrivateIpAddresses",
    ]
    look = ["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"]
    return [
        iam.PolicyStatement(
            sid="StandInSubnets",
            actions=["ec2:CreateNetworkInterface"],
            resources=[interfaces, *named],
        ),
        iam.PolicyStatement(sid="ReleaseInterfaces", actions=release, resources=[interfaces]),
        iam.PolicyStatement(
            sid="LookAtInterfaces",
            actions=look,
            resources=["*"],
            conditions={"StringEquals": {"aws:RequestedRegion": Aws.REGION}},
        ),
        iam.PolicyStatement(
            sid="NotByItsCode",
            effect=iam.Effect.DENY,
            actions=["ec2:CreateNetworkInterface", *release, *look],
            resources=["*"],
            conditions={"ArnEquals": {"lambda:SourceFunctionArn": function_arn(stack, plan.name)}},
        ),
    ]


def trace_statements(*, samples: bool = False) -> list[iam.PolicyStatement]:
    """Allow traces to be sent, and with `samples` to be asked which; X-Ray knows no resource.

    Source: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-xray-tracing.html
    (2026-08); a function is told by Lambda what is sampled.
    """
    asked = ["xray:GetSamplingRules", "xray:GetSamplingTargets"] if samples else []
    return [
        iam.PolicyStatement(
            sid="Trace",
            actions=[*asked, "xray:PutTelemetryRecords", "xray:PutTraceSegments"],
            resources=["*"],
            conditions={"StringEquals": {"aws:RequestedRegion": Aws.REGION}},
        )
    ]


def _ec2(stack: Stack, kind: str, name: str) -> str:
    return stack.format_arn(service="ec2", resource=kind, resource_name=name)
