"""Functions in given subnets, entries that stand already, traces: what each choice changes."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.infra.policies import asked
from tests.infra.policies.evaluation import Ask
from tests.infra.policies.granted import Grants
from tests.infra.templates import CONTROL_PLANE, Template, cluster_stack, synthesized, walk

SUBNETS = ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"]
GROUP = "sg-0cccccccccccccccc"
EC2 = f"arn:aws:ec2:{asked.REGION}:{asked.ACCOUNT}"
MAKE = "ec2:CreateNetworkInterface"
LOOKS = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
RELEASES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)
TRACES = ("xray:PutTelemetryRecords", "xray:PutTraceSegments")
HERE = {"aws:RequestedRegion": asked.REGION}
CALLERS = tuple(asked.RIGHTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesized(
        tmp_path_factory,
        "private",
        clusters="prod,staging",
        max_price_per_hour="prod:none,staging:none",
        nag="true",
        subnets=",".join(SUBNETS),
        security_groups=GROUP,
        tracing="on",
        existing_access_entries="prod:nodes,prod:terminate",
        node_roles="prod:Mine,staging:Theirs",
    )


@pytest.fixture(scope="module")
def private(folder: Path) -> Template:
    return Template(folder / f"{CONTROL_PLANE}.template.json")


@pytest.fixture(scope="module")
def rights(private: Template) -> Grants:
    return Grants({"": private})


def ask(function: str, action: str, resource: str = "*", **context: str) -> Ask:
    return Ask(principal=asked.role_of(function), action=action, resource=resource, context=context)


def test_only_functions_that_call_a_cluster_are_in_the_subnets(
    private: Template, control_plane: Template
) -> None:
    standing = {
        resource.properties["FunctionName"]: resource.properties["VpcConfig"]
        for resource in private.of("AWS::Lambda::Function")
        if "VpcConfig" in resource.properties
    }

    assert sorted(standing) == sorted(f"dovetail-{name}" for name in CALLERS)
    assert all(
        entry == {"SubnetIds": SUBNETS, "SecurityGroupIds": [GROUP]} for entry in standing.values()
    )
    assert "VpcConfig" not in json.dumps(control_plane.raw)


def test_nothing_is_looked_up_for_it(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())

    assert "missing" not in manifest


def test_the_security_rules_find_nothing_unexplained_with_every_choice_made(folder: Path) -> None:
    report = json.loads((folder / "validation-report.json").read_text())

    assert report["pluginReports"][0]["violations"] == []


@pytest.mark.parametrize("function", CALLERS)
def test_lambda_makes_interfaces_in_these_subnets_only(rights: Grants, function: str) -> None:
    here = [f"{EC2}:subnet/{value}" for value in SUBNETS]
    here += [f"{EC2}:security-group/{GROUP}", f"{EC2}:network-interface/eni-1"]

    assert all(rights.allows(ask(function, MAKE, value)) for value in here)
    assert not rights.allows(ask(function, MAKE, f"{EC2}:subnet/subnet-0dddddddd"))
    assert not rights.allows(ask(function, MAKE, f"{EC2}:security-group/sg-0dddddddd"))
    assert not rights.allows(ask("refresh_catalog", MAKE, here[0]))
    for action in RELEASES:
        assert rights.allows(ask(function, action, f"{EC2}:network-interface/eni-1"))
        elsewhere = f"{EC2.replace(asked.REGION, 'us-east-1')}:network-interface/eni-1"
        assert not rights.allows(ask(function, action, elsewhere))
    for action in LOOKS:
        assert rights.allows(ask(function, action, **HERE))
        assert not rights.allows(ask(function, action, **{"aws:RequestedRegion": "us-east-1"}))


@pytest.mark.parametrize("function", CALLERS)
def test_the_code_of_a_function_cannot_use_the_rights_lambda_needs(
    rights: Grants, function: str
) -> None:
    name = function.replace("_", "-")
    arn = f"arn:aws:lambda:{asked.REGION}:{asked.ACCOUNT}:function:dovetail-{name}"
    by_code = {"lambda:SourceFunctionArn": arn, **HERE}

    for action in (MAKE, *RELEASES):
        own = f"{EC2}:network-interface/eni-1"
        assert not rights.allows(ask(function, action, own, **by_code))
    for action in LOOKS:
        assert not rights.allows(ask(function, action, **by_code))


def test_traces_are_sent_from_here_and_to_nowhere_else(
    rights: Grants, private: Template, control_plane: Template
) -> None:
    for action in TRACES:
        assert rights.allows(ask("refresh_catalog", action, **HERE))
        elsewhere = {"aws:RequestedRegion": "us-east-1"}
        assert not rights.allows(ask("refresh_catalog", action, **elsewhere))
    assert not rights.allows(ask("provision", "xray:GetTraceSummaries", **HERE))
    functions = private.of("AWS::Lambda::Function")
    assert {function.properties["TracingConfig"]["Mode"] for function in functions} == {"Active"}
    assert {
        function.properties["Environment"]["Variables"]["POWERTOOLS_TRACE_DISABLED"]
        for function in functions
    } == {"false"}
    machines = private.of("AWS::StepFunctions::StateMachine")
    assert all(
        resource.properties["TracingConfiguration"] == {"Enabled": True} for resource in machines
    )
    for machine in machines:
        for action in (*TRACES, "xray:GetSamplingRules", "xray:GetSamplingTargets"):
            asking = Ask(
                principal=machine.properties["RoleArn"],
                action=action,
                resource="*",
                context=HERE,
            )
            assert rights.allows(asking)
            away = {"aws:RequestedRegion": "us-east-1"}
            assert not rights.allows(replace(asking, context=away))
    assert "xray:" not in json.dumps(control_plane.raw)
    assert "Tracing" not in json.dumps(control_plane.raw)


@pytest.mark.parametrize(
    ("cluster", "made"),
    [
        ("prod", ["Mine", "inside", "launch"]),
        ("staging", ["Theirs", "inside", "launch", "nodes", "terminate"]),
    ],
)
def test_an_access_entry_that_exists_already_is_not_managed(
    folder: Path, cluster: str, made: list[str]
) -> None:
    template = Template(folder / f"{cluster_stack(cluster)}.template.json")
    entries = [
        resource.properties["PrincipalArn"] for resource in template.of("AWS::EKS::AccessEntry")
    ]

    kinds = [entry.rpartition("-" if "/Dovetail-" in entry else "/")[2] for entry in entries]
    kinds = ["nodes" if kind.startswith("DovetailNode-") else kind for kind in kinds]
    assert sorted(kinds) == made
    # All else is as it was: the roles, their trust and their rights.
    assert len(template.of("AWS::IAM::Role")) == 5


@pytest.mark.parametrize(("cluster", "role"), [("prod", "Mine"), ("staging", "Theirs")])
def test_machines_carry_a_role_of_the_user_s_where_it_is_named(
    folder: Path, cluster: str, role: str
) -> None:
    template = Template(folder / f"{cluster_stack(cluster)}.template.json")
    rights = Grants({cluster: template})

    def passes(name: str, service: str = "ec2.amazonaws.com") -> bool:
        asking = Ask(
            principal=asked.cluster_role(cluster, "launch"),
            action="iam:PassRole",
            resource=f"arn:aws:iam::{asked.ACCOUNT}:role/{name}",
            context={"iam:PassedToService": service},
        )
        return rights.allows(asking)

    assert passes(role)
    assert not passes(role, "lambda.amazonaws.com")
    assert not passes("Theirs" if role == "Mine" else "Mine")
    profile = template.one("AWS::IAM::InstanceProfile", Roles=[role]).logical_id
    (parameter,) = template.of("AWS::SSM::Parameter")
    written = json.dumps(parameter.raw["Properties"]["Value"])
    assert f'{role}\\":\\"' in written
    assert f'{{"Ref": "{profile}"}}' in written
    (entry,) = [
        resource.properties
        for resource in template.of("AWS::EKS::AccessEntry")
        if resource.properties["PrincipalArn"].endswith(f"/{role}")
    ]
    assert entry["Type"] == "EC2_LINUX"


def test_without_a_choice_no_interface_is_named(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    texts: list[Any] = [node for node in walk(control_plane.raw) if isinstance(node, str)]

    assert not [text for text in texts if text == MAKE]
    assert len(clusters["prod"].of("AWS::EKS::AccessEntry")) == 4
