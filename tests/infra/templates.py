"""Reading synthesised templates as CloudFormation would."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.aws.app import build_app
from tests.once import made_once

PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "123456789012",
    "AWS::StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/DovetailControlPlane/id",
    "AWS::URLSuffix": "amazonaws.com",
}
CONTROL_PLANE = "DovetailControlPlane"
CLUSTERS = ("demo", "prod", "staging")
CEILINGS = {"demo": 100.0, "prod": None, "staging": 12.5}
# The app with the security rules on, without its bundle.
CONTEXT = {
    "bundle": "code",
    "clusters": ",".join(CLUSTERS),
    "max_price_per_hour": ",".join(f"{name}:{CEILINGS[name] or 'none'}" for name in CLUSTERS),
    "nag": "true",
}
# What stands before a resource's name in its ARN.
_ARN_PARTS = {
    "AWS::DynamoDB::Table": "table/",
    "AWS::Events::EventBus": "event-bus/",
    "AWS::Events::Rule": "rule/",
    "AWS::Lambda::Function": "function:",
    "AWS::Logs::LogGroup": "log-group:",
    "AWS::StepFunctions::StateMachine": "stateMachine:",
}


def cluster_stack(name: str) -> str:
    return f"DovetailCluster-{name}"


def synthesized(factory: pytest.TempPathFactory, name: str, **context: str) -> Path:
    """Return the folder of the app, without its bundle, synthesised once in a run."""
    whole = {"bundle": "code", **context}
    return made_once(factory, name, lambda made: build_app(whole, outdir=str(made)).synth())


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource, its intrinsic functions resolved."""

    logical_id: str
    kind: str
    properties: Mapping[str, Any]
    raw: Mapping[str, Any]


class Template:
    """One stack's template."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stack = path.name.removesuffix(".template.json")
        self.raw: dict[str, Any] = json.loads(path.read_text())
        self._names = {
            logical_id: self._name(logical_id, resource)
            for logical_id, resource in self.raw["Resources"].items()
        }

    def of(self, kind: str) -> list[Resource]:
        return [
            self[name]
            for name, resource in self.raw["Resources"].items()
            if resource["Type"] == kind
        ]

    def one(self, kind: str, part: str = "", **said: Any) -> Resource:
        """Return the only resource of a kind whose logical id begins so and that says so."""
        (found,) = (
            resource
            for resource in self.of(kind)
            if resource.logical_id.startswith(part)
            and all(resource.properties.get(name) == value for name, value in said.items())
        )
        return found

    def node_role(self) -> Resource:
        """Return the role that machines of the cluster carry."""
        (role,) = (
            resource
            for resource in self.of("AWS::IAM::Role")
            if str(resource.properties.get("RoleName", "")).startswith("DovetailNode-")
        )
        return role

    def __getitem__(self, logical_id: str) -> Resource:
        raw = self.raw["Resources"][logical_id]
        return Resource(
            logical_id=logical_id,
            kind=raw["Type"],
            properties=self.resolve(raw.get("Properties", {})),
            raw=raw,
        )

    def statements(self, role_logical_id: str) -> list[dict[str, Any]]:
        """Return all statements of a role's policies: its own, and what that has no room for."""
        found = []
        for policy in self.policies():
            if {"Ref": role_logical_id} in policy.raw["Properties"]["Roles"]:
                found += policy.properties["PolicyDocument"]["Statement"]
        return found

    def policies(self) -> list[Resource]:
        """Return the policies of roles."""
        return [*self.of("AWS::IAM::Policy"), *self.of("AWS::IAM::ManagedPolicy")]

    def resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.resolve(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Ref"}:
            return self._reference(value["Ref"])
        if set(value) == {"Fn::GetAtt"}:
            logical_id, attribute = value["Fn::GetAtt"]
            return self._attribute(logical_id, attribute)
        if set(value) == {"Fn::Join"}:
            separator, parts = value["Fn::Join"]
            return separator.join(str(self.resolve(part)) for part in parts)
        if set(value) == {"Fn::Sub"}:
            return re.sub(r"\$\{([^}]+)\}", lambda m: self._reference(m[1]), value["Fn::Sub"])
        return {key: self.resolve(entry) for key, entry in value.items()}

    def _reference(self, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        if self.raw["Resources"][name]["Type"] == "AWS::SQS::Queue":
            return f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}"
        bus = self._bus(name)
        return f"{bus}|{self._names[name]}" if bus else self._names[name]

    def _bus(self, name: str) -> str:
        """Return the bus of a rule, empty for the default bus and for what is no rule.

        Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-events-rule.html
        (Return values, 2026-11).
        """
        resource = self.raw["Resources"][name]
        if resource["Type"] != "AWS::Events::Rule":
            return ""
        return str(self.resolve(resource["Properties"].get("EventBusName", "")))

    def _attribute(self, logical_id: str, attribute: str) -> str:
        if attribute != "Arn":
            return f"{logical_id}.{attribute}"
        kind = self.raw["Resources"][logical_id]["Type"]
        name = self._names[logical_id]
        if kind == "AWS::IAM::Role":
            return f"arn:aws:iam::123456789012:role/{name}"
        if kind == "AWS::S3::Bucket":
            return f"arn:aws:s3:::{name.lower()}"
        service = kind.split("::")[1].lower()
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-logs-loggroup.html
        # (Return values, 2026-11): with all streams of it.
        streams = ":*" if kind == "AWS::Logs::LogGroup" else ""
        return f"arn:aws:{service}:eu-west-1:123456789012:{_ARN_PARTS.get(kind, '')}{name}{streams}"

    def _name(self, logical_id: str, resource: Mapping[str, Any]) -> str:
        properties = resource.get("Properties", {})
        for key in ("RoleName", "FunctionName", "StateMachineName", "InstanceProfileName"):
            if isinstance(properties.get(key), str | dict) and resource["Type"].split("::")[2] in {
                "Role",
                "Function",
                "StateMachine",
                "InstanceProfile",
            }:
                return str(self.resolve(properties[key]))
        # So CloudFormation names a role, with letters by chance behind.
        return f"{self.stack}-{logical_id}" if resource["Type"] == "AWS::IAM::Role" else logical_id


def listed(value: Any) -> list[Any]:
    """Return what a policy may write as one value or as a list, as a list."""
    return value if isinstance(value, list) else [value]


def walk(value: Any) -> Iterator[Any]:
    """Yield every node of a JSON document."""
    yield value
    if isinstance(value, dict):
        for entry in value.values():
            yield from walk(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from walk(entry)
