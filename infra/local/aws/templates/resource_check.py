"""Did the deployment make everything? The template against what the services' APIs show.

moto leaves a resource type it does not know out of a stack without an error, so the status of
a stack proves little.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.local.aws.clients import Access, ClientFor, clients_of
from infra.local.aws.templates.assembly import StackArtifact, read_assembly

NOT_EMULATED = Path(__file__).parent.parent / "not_emulated.json"
Probe = Callable[[ClientFor, str], bool]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class MissingResource:
    """A resource of a template that does not exist after the deployment."""

    stack: str
    logical_id: str
    resource_type: str
    reason: str


def _call(service: str, operation: str, argument: str) -> Probe:
    """Probe by a call that fails when the resource is missing."""

    def probe(client: ClientFor, physical_id: str) -> bool:
        from botocore.exceptions import ClientError

        try:
            getattr(client(service), operation)(**{argument: physical_id})
        except ClientError:
            return False
        return True

    return probe


def _listed(service: str, operation: str, argument: str, answer: str) -> Probe:
    """Probe by a call whose list is empty when the resource is missing."""

    def probe(client: ClientFor, physical_id: str) -> bool:
        return bool(getattr(client(service), operation)(**{argument: [physical_id]})[answer])

    return probe


def _log_group(client: ClientFor, physical_id: str) -> bool:
    groups = client("logs").describe_log_groups(logGroupNamePrefix=physical_id)["logGroups"]
    return any(group["logGroupName"] == physical_id for group in groups)


def _rule(client: ClientFor, physical_id: str) -> bool:
    buses = client("events").list_event_buses()["EventBuses"]
    return any(
        rule["Name"] == physical_id
        for bus in buses
        for page in client("events").get_paginator("list_rules").paginate(EventBusName=bus["Name"])
        for rule in page["Rules"]
    )


def _access_entry(client: ClientFor, physical_id: str) -> bool:
    principal, _, cluster = physical_id.partition("|")
    entries = client("eks").list_access_entries(clusterName=cluster)["accessEntries"]
    return principal in entries


def _bucket_policy(client: ClientFor, physical_id: str) -> bool:
    return _call("s3", "get_bucket_policy", "Bucket")(client, physical_id)


PROBES: Mapping[str, Probe] = {
    "AWS::CloudWatch::Alarm": _listed(
        "cloudwatch", "describe_alarms", "AlarmNames", "MetricAlarms"
    ),
    "AWS::CloudWatch::Dashboard": _call("cloudwatch", "get_dashboard", "DashboardName"),
    "AWS::DynamoDB::Table": _call("dynamodb", "describe_table", "TableName"),
    "AWS::EKS::AccessEntry": _access_entry,
    "AWS::Events::EventBus": _call("events", "describe_event_bus", "Name"),
    "AWS::Events::Rule": _rule,
    "AWS::IAM::InstanceProfile": _call("iam", "get_instance_profile", "InstanceProfileName"),
    "AWS::IAM::Role": _call("iam", "get_role", "RoleName"),
    "AWS::Lambda::EventSourceMapping": _call("lambda", "get_event_source_mapping", "UUID"),
    "AWS::Lambda::Function": _call("lambda", "get_function", "FunctionName"),
    "AWS::Logs::LogGroup": _log_group,
    "AWS::S3::Bucket": _call("s3", "head_bucket", "Bucket"),
    "AWS::S3::BucketPolicy": _bucket_policy,
    "AWS::SQS::Queue": _call("sqs", "get_queue_attributes", "QueueUrl"),
    "AWS::SSM::Parameter": _call("ssm", "get_parameter", "Name"),
    "AWS::StepFunctions::StateMachine": _call(
        "stepfunctions", "describe_state_machine", "stateMachineArn"
    ),
}
"""How to see that a resource exists; of other types it is enough that the stack lists them."""


def not_emulated() -> dict[str, str]:
    """Resource types that are left out on purpose, each with its reason."""
    content: dict[str, str] = json.loads(NOT_EMULATED.read_text(encoding="utf-8"))
    return content


def missing_resources(
    assembly: Path, access: Access, stacks: Sequence[str] = ()
) -> tuple[MissingResource, ...]:
    """Return the declared resources that do not exist, sorted; empty when all exist.

    Resources under a condition count only when the condition is true.
    """
    client = clients_of(access)
    excused = not_emulated()
    missing: list[MissingResource] = []
    for stack in read_assembly(assembly):
        if not stacks or stack.name in stacks:
            missing += _missing_of(client, stack, excused)
    return tuple(sorted(missing))


def _missing_of(
    client: ClientFor, stack: StackArtifact, excused: Mapping[str, str]
) -> list[MissingResource]:
    rows = client("cloudformation").describe_stack_resources(StackName=stack.name)
    made = {
        row["LogicalResourceId"]: row.get("PhysicalResourceId")
        for row in rows["StackResources"]
        if "LogicalResourceId" in row  # moto lists a type it left out as an empty row
    }
    missing: list[MissingResource] = []
    for logical_id, resource in sorted(stack.template["Resources"].items()):
        resource_type = resource["Type"]
        if resource_type in excused or ("Condition" in resource and logical_id not in made):
            continue
        reason = _reason(client, resource_type, logical_id, made)
        if reason:
            missing.append(
                MissingResource(
                    stack=stack.name,
                    logical_id=logical_id,
                    resource_type=resource_type,
                    reason=reason,
                )
            )
    return missing


def _reason(
    client: ClientFor, resource_type: str, logical_id: str, made: Mapping[str, str | None]
) -> str | None:
    if logical_id not in made:
        return "the stack does not list it"
    probe = PROBES.get(resource_type)
    physical_id = made[logical_id]
    if probe is None:
        return None
    if not physical_id:
        return "the stack lists it without a physical id"
    if not probe(client, physical_id):
        return f"the API of its service does not know {physical_id}"
    return None
