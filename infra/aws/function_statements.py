"""The IAM policy statements of the functions' roles, as narrow as possible."""

from collections.abc import Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from infra.aws.functions import FunctionSpec
from infra.aws.names import (
    PARAMETERS,
    cluster_roles_pattern,
    construct_name,
    function_arn,
    role_arn,
    state_machine_arn,
)
from shared.settings import LINKED_ROLES

DECISIONS: str = "decisions/*"
BASES: str = "bases/*"
LAUNCHES: str = "launches/*"
CATALOGUE: str = "catalog/*"
COPIES: str = "copies/*"


def ledger_statements(table: dynamodb.ITable) -> list[iam.PolicyStatement]:
    """Allow what single rows and transactions need, but no scans."""
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


def bucket_statements(spec: FunctionSpec, bucket: s3.IBucket) -> list[iam.PolicyStatement]:
    """Allow storing decisions and launches and reading the catalogue, or writing the catalogue."""
    statements = []
    if spec.uses_decisions:
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
            # Without it S3 responds "access denied" for a key that does not exist.
            iam.PolicyStatement(
                sid="TellMissingKeys",
                actions=["s3:ListBucket"],
                resources=[bucket.bucket_arn],
                conditions={"StringLike": {"s3:prefix": [DECISIONS, BASES, LAUNCHES, CATALOGUE]}},
            ),
        ]
    if spec.reads_copies:
        put = ["s3:PutObject"] if spec.writes_copies else []
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
    if spec.writes_catalogue:
        statements.append(
            iam.PolicyStatement(
                sid="WriteCatalogue",
                actions=["s3:PutObject"],
                resources=[bucket.arn_for_objects(CATALOGUE)],
            )
        )
        # To read whether a catalogue exists and how old it is.
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
    spec: FunctionSpec, wake_queue: sqs.IQueue, dead_letters: sqs.IQueue
) -> list[iam.PolicyStatement]:
    """Allow sending invalid records to the dead-letter queue, and wake-ups to the wake queue."""
    statements = [
        iam.PolicyStatement(
            sid="PutAside", actions=["sqs:SendMessage"], resources=[dead_letters.queue_arn]
        )
    ]
    if spec.wakes:
        statements.append(
            iam.PolicyStatement(
                sid="Wake", actions=["sqs:SendMessage"], resources=[wake_queue.queue_arn]
            )
        )
    if spec.woken:
        statements.append(
            iam.PolicyStatement(
                sid="TakeWakeUps",
                actions=["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
                resources=[wake_queue.queue_arn],
            )
        )
    return statements


def cluster_statements(spec: FunctionSpec, stack: Stack) -> list[iam.PolicyStatement]:
    """Allow finding the attached clusters and assuming their role of one kind."""
    if spec.cluster_role is None and not spec.finds_clusters:
        return []
    path = PARAMETERS.removeprefix("/")
    statements = [
        iam.PolicyStatement(
            sid="FindClusters",
            # GetParameter is for the brakes of the cluster that is called.
            actions=[
                *(["ssm:GetParameter"] if spec.cluster_role else []),
                "ssm:GetParametersByPath",
            ],
            resources=[
                stack.format_arn(service="ssm", resource="parameter", resource_name=name)
                for name in (path, *([f"{path}/*"] if spec.cluster_role else []))
            ],
        )
    ]
    if spec.cluster_role is not None:
        statements.append(
            iam.PolicyStatement(
                sid="AssumeClusterRole",
                actions=["sts:AssumeRole"],
                resources=[cluster_roles_pattern(stack, spec.cluster_role)],
            )
        )
    return statements


def start_statements(spec: FunctionSpec, stack: Stack) -> list[iam.PolicyStatement]:
    """Allow starting timers and invoking functions."""
    statements = []
    if spec.starts:
        statements.append(
            iam.PolicyStatement(
                sid="StartTimers",
                actions=["states:StartExecution"],
                resources=[
                    state_machine_arn(stack, state_machine) for state_machine in spec.starts
                ],
            )
        )
    statements += [
        iam.PolicyStatement(
            sid=f"Invoke{construct_name(name)}",
            actions=["lambda:InvokeFunction"],
            resources=[function_arn(stack, name)],
        )
        for name in spec.invokes
    ]
    return statements


def catalogue_statements(spec: FunctionSpec, stack: Stack) -> list[iam.PolicyStatement]:
    """Allow reading offerings and prices, and creating the service-linked roles of EC2.

    The actions that read have no resource-level permissions.
    """
    if not spec.writes_catalogue:
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
        # Only the roles of the named services: AWS defines what they may do.
        iam.PolicyStatement(
            sid="MakeLinkedRoles",
            actions=["iam:CreateServiceLinkedRole"],
            resources=_linked_roles(stack),
            conditions={"StringEquals": {"iam:AWSServiceName": sorted(LINKED_ROLES.values())}},
        ),
        # The price list has endpoints in a few Regions only, so no Region can be required.
        iam.PolicyStatement(sid="ReadPrices", actions=["pricing:GetProducts"], resources=["*"]),
    ]


def _linked_roles(stack: Stack) -> list[str]:
    return [
        role_arn(stack, f"aws-service-role/{service}/{name}")
        for name, service in sorted(LINKED_ROLES.items())
    ]


def log_statements(log_group_arn: str) -> list[iam.PolicyStatement]:
    """Allow writing lines to the function's own log group, which exists already.

    It may not create one: Lambda delivers lines minutes after an invocation, and with that
    permission would recreate a log group that was deleted with the stack.

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
    spec: FunctionSpec, stack: Stack, subnets: Sequence[str], security_groups: Sequence[str]
) -> list[iam.PolicyStatement]:
    """Allow Lambda to manage a function's network interfaces, but not the function's code.

    Lambda creates them under the function's role; only calls of the code itself carry the
    function's ARN, so those are denied.

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
            conditions={"ArnEquals": {"lambda:SourceFunctionArn": function_arn(stack, spec.name)}},
        ),
    ]


def trace_statements(*, samples: bool = False) -> list[iam.PolicyStatement]:
    """Allow sending traces and, with `samples`, reading sampling rules, on all resources.

    X-Ray has no resource-level permissions for these actions.

    Source: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-xray-tracing.html
    (2026-08); Lambda tells a function what is sampled.
    """
    sampling_actions = ["xray:GetSamplingRules", "xray:GetSamplingTargets"] if samples else []
    return [
        iam.PolicyStatement(
            sid="Trace",
            actions=[*sampling_actions, "xray:PutTelemetryRecords", "xray:PutTraceSegments"],
            resources=["*"],
            conditions={"StringEquals": {"aws:RequestedRegion": Aws.REGION}},
        )
    ]


def _ec2(stack: Stack, kind: str, name: str) -> str:
    return stack.format_arn(service="ec2", resource=kind, resource_name=name)
