"""Did the deployment make everything? The template against what the services' APIs show.

moto leaves a resource type it does not know out of a stack without an error, so the status of
a stack proves little.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.local.aws.clients import Access, ClientFor, clients_of
from infra.local.aws.templates.assembly import StackArtifact, read_assembly

NOT_EMULATED = Path(__file__).parent.parent / "not_emulated.json"
Finder = Callable[[ClientFor, Collection[str]], Collection[str]]
"""Of these physical ids, those that the API of their service knows."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class MissingResource:
    """A resource of a template that does not exist after the deployment."""

    stack: str
    logical_id: str
    resource_type: str
    reason: str


def _each(service: str, operation: str, argument: str) -> Finder:
    """Find by a call for each, which fails when the resource is missing."""

    def find(client: ClientFor, ids: Collection[str]) -> Collection[str]:
        return {value for value in ids if _answers(client(service), operation, argument, value)}

    return find


def _answers(client: Any, operation: str, argument: str, value: str) -> bool:
    from botocore.exceptions import ClientError

    try:
        getattr(client, operation)(**{argument: value})
    except ClientError:
        return False
    return True


def _listed(service: str, operation: str, answer: str, name: str) -> Finder:
    """Find among all that the service lists."""

    def find(client: ClientFor, _ids: Collection[str]) -> Collection[str]:
        return _names(client(service), operation, answer, name)

    return find


def _names(client: Any, operation: str, answer: str, name: str, **asked: str) -> set[str]:
    pages = client.get_paginator(operation).paginate(**asked)
    return {row[name] for page in pages for row in page[answer]}


def _rules(client: ClientFor, _ids: Collection[str]) -> Collection[str]:
    events = client("events")
    buses = [bus["Name"] for bus in events.list_event_buses()["EventBuses"]]
    return {
        rule
        for bus in buses
        for rule in _names(events, "list_rules", "Rules", "Name", EventBusName=bus)
    }


def _access_entries(client: ClientFor, ids: Collection[str]) -> Collection[str]:
    clusters = {value.partition("|")[2] for value in ids}
    return {
        f"{principal}|{cluster}"
        for cluster in clusters
        for principal in client("eks").list_access_entries(clusterName=cluster)["accessEntries"]
    }


FINDERS: Mapping[str, Finder] = {
    "AWS::CloudWatch::Alarm": _listed("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    "AWS::CloudWatch::Dashboard": _each("cloudwatch", "get_dashboard", "DashboardName"),
    "AWS::DynamoDB::Table": _each("dynamodb", "describe_table", "TableName"),
    "AWS::EKS::AccessEntry": _access_entries,
    "AWS::Events::EventBus": _each("events", "describe_event_bus", "Name"),
    "AWS::Events::Rule": _rules,
    "AWS::IAM::InstanceProfile": _each("iam", "get_instance_profile", "InstanceProfileName"),
    "AWS::IAM::Role": _listed("iam", "list_roles", "Roles", "RoleName"),
    "AWS::Lambda::EventSourceMapping": _each("lambda", "get_event_source_mapping", "UUID"),
    "AWS::Lambda::Function": _listed("lambda", "list_functions", "Functions", "FunctionName"),
    "AWS::Logs::LogGroup": _listed("logs", "describe_log_groups", "logGroups", "logGroupName"),
    "AWS::S3::Bucket": _each("s3", "head_bucket", "Bucket"),
    "AWS::S3::BucketPolicy": _each("s3", "get_bucket_policy", "Bucket"),
    "AWS::SQS::Queue": _each("sqs", "get_queue_attributes", "QueueUrl"),
    "AWS::SSM::Parameter": _each("ssm", "get_parameter", "Name"),
    "AWS::StepFunctions::StateMachine": _listed(
        "stepfunctions", "list_state_machines", "stateMachines", "stateMachineArn"
    ),
}
"""How to see which resources exist; of other types it is enough that the stack lists them."""


def existing(client: ClientFor, resources: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of some resources that the APIs of their services know."""
    ids: dict[str, set[str]] = defaultdict(set)
    for kind, value in resources:
        ids[kind].add(value)
    return {
        (kind, value)
        for kind, wanted in sorted(ids.items())
        for value in wanted.intersection(FINDERS[kind](client, wanted))
    }


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
    found = existing(
        client,
        (
            (stack.template["Resources"][logical_id]["Type"], value)
            for logical_id, value in made.items()
            if value and stack.template["Resources"][logical_id]["Type"] in FINDERS
        ),
    )
    missing: list[MissingResource] = []
    for logical_id, resource in sorted(stack.template["Resources"].items()):
        resource_type = resource["Type"]
        if resource_type in excused or ("Condition" in resource and logical_id not in made):
            continue
        reason = _reason(resource_type, logical_id, made, found)
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
    resource_type: str,
    logical_id: str,
    made: Mapping[str, str | None],
    found: Collection[tuple[str, str]],
) -> str | None:
    if logical_id not in made:
        return "the stack does not list it"
    physical_id = made[logical_id]
    if resource_type not in FINDERS:
        return None
    if not physical_id:
        return "the stack lists it without a physical id"
    if (resource_type, physical_id) not in found:
        return f"the API of its service does not know {physical_id}"
    return None
