"""An upgrade from the last release replaces and removes nothing that has a state."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.infra.templates import Template

RELEASE = Path(__file__).resolve().parents[2] / "data" / "release"
# Types with a state or with a name others know, and the properties that replace them when changed.
# Source: "Update requires: Replacement" in
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/ (2026-08).
REPLACED_BY: Mapping[str, tuple[str, ...]] = {
    "AWS::DynamoDB::Table": ("TableName", "KeySchema"),
    "AWS::Events::EventBus": ("Name",),
    "AWS::IAM::InstanceProfile": ("InstanceProfileName",),
    "AWS::IAM::Role": ("RoleName",),
    "AWS::Lambda::Function": ("FunctionName", "PackageType"),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::SQS::Queue": ("QueueName", "FifoQueue"),
    "AWS::SSM::Parameter": ("Name",),
    "AWS::StepFunctions::StateMachine": ("StateMachineName", "StateMachineType"),
}


def lost(release: Mapping[str, Any], present: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of a release's template is removed or replaced by the present one."""
    for name, old in release["Resources"].items():
        if old["Type"] not in REPLACED_BY:
            continue
        new = present["Resources"].get(name)
        if new is None or new["Type"] != old["Type"]:
            yield f"{name} is removed"
            continue
        for key in REPLACED_BY[old["Type"]]:
            if old.get("Properties", {}).get(key) != new.get("Properties", {}).get(key):
                yield f"{name} is replaced: {key}"


@pytest.fixture
def released() -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in RELEASE.glob("*.template.json")}


def test_nothing_with_a_state_is_lost(
    released: dict[str, dict[str, Any]],
    control_plane: Template,
    clusters: Mapping[str, Template],
) -> None:
    present = {template.path.name: template.raw for template in (control_plane, clusters["prod"])}

    assert released.keys() == present.keys()
    for name, template in present.items():
        assert list(lost(released[name], template)) == [], name


def test_a_change_that_replaces_is_noticed(released: dict[str, dict[str, Any]]) -> None:
    release = released["DovetailControlPlane.template.json"]
    present = json.loads(json.dumps(release))
    (table,) = [n for n, r in present["Resources"].items() if r["Type"] == "AWS::DynamoDB::Table"]
    (bus,) = [n for n, r in present["Resources"].items() if r["Type"] == "AWS::Events::EventBus"]
    present["Resources"][table]["Properties"]["KeySchema"].reverse()
    del present["Resources"][bus]

    assert sorted(lost(release, present)) == sorted(
        [f"{bus} is removed", f"{table} is replaced: KeySchema"]
    )


def test_a_running_timer_keeps_its_machine_and_its_way(
    released: dict[str, dict[str, Any]], control_plane: Template
) -> None:
    """Its execution keeps the definition it began with; what that calls must still be there."""
    old = released["DovetailControlPlane.template.json"]["Resources"]
    functions = {resource.logical_id for resource in control_plane.of("AWS::Lambda::Function")}
    machines = [
        entry for entry in old.values() if entry["Type"] == "AWS::StepFunctions::StateMachine"
    ]

    assert len(machines) == 4
    for machine in machines:
        called = machine["Properties"]["DefinitionSubstitutions"]["FunctionArn"]["Fn::GetAtt"][0]
        assert called in functions
