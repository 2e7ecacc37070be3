"""Who may do what: the control plane's functions and each cluster's three roles."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from infra.aws.functions import FUNCTIONS, ClusterRoleKind, TimerStateMachine
from infra.aws.names import FORWARDED
from tests.infra.templates import Template, listed

PLANS = {plan.name: plan for plan in FUNCTIONS}
TAGS = {
    "dovetail.dev/cluster": "demo",
    "kubernetes.io/cluster/demo": "owned",
}
ENDING = {"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"}
LAUNCHING = {"ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"}


def _functions_role(template: Template, name: str) -> str:
    handler = f"functions.{name}.handler.handler"
    function = template.one("AWS::Lambda::Function", Handler=handler)
    role: str = function.raw["Properties"]["Role"]["Fn::GetAtt"][0]
    return role


def _of_function(template: Template, name: str) -> dict[str, dict[str, Any]]:
    """Return the statements of a function's role by id."""
    found = template.statements(_functions_role(template, name))
    return {entry["Sid"]: entry for entry in found if "Sid" in entry}


def _of_cluster(template: Template, right: ClusterRoleKind) -> dict[str, dict[str, Any]]:
    """Return the statements of a cluster's role by id."""
    (role,) = [
        resource.logical_id
        for resource in template.of("AWS::IAM::Role")
        if str(resource.properties.get("RoleName", "")).endswith(f"-{right.value}")
    ]
    return {statement["Sid"]: statement for statement in template.statements(role)}


def _actions(statements: Mapping[str, dict[str, Any]]) -> set[str]:
    return {action for statement in statements.values() for action in listed(statement["Action"])}


def _all_statements(
    control_plane: Template, clusters: Mapping[str, Template]
) -> Iterator[dict[str, Any]]:
    for template in (control_plane, *clusters.values()):
        for policy in template.policies():
            yield from policy.properties["PolicyDocument"]["Statement"]


def test_no_statement_has_a_wildcard_action(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    statements = list(_all_statements(control_plane, clusters))

    assert len(statements) > 60
    for statement in statements:
        assert not [entry for entry in listed(statement["Action"]) if "*" in entry]


def test_a_bare_wildcard_resource_is_for_reading_only(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    bare = [
        statement
        for statement in _all_statements(control_plane, clusters)
        if "*" in listed(statement["Resource"])
    ]

    assert {entry["Sid"] for entry in bare} == {"Look", "ReadOffers", "ReadPrices"}
    for entry in bare:
        assert all(a.split(":")[1].startswith(("Describe", "Get")) for a in listed(entry["Action"]))
        if entry["Sid"] != "ReadPrices":
            assert entry["Condition"] == {"StringEquals": {"aws:RequestedRegion": "eu-west-1"}}


@pytest.mark.parametrize(
    ("name", "timers"),
    [
        (
            "provision",
            {
                TimerStateMachine.EXPIRATION,
                TimerStateMachine.REGISTRATION,
                TimerStateMachine.REPLACEMENT,
            },
        ),
        (
            "replacement",
            {
                TimerStateMachine.EMPTINESS,
                TimerStateMachine.REPLACEMENT,
                TimerStateMachine.TERMINATION,
            },
        ),
        ("bind", {TimerStateMachine.EXPIRATION, TimerStateMachine.TERMINATION}),
        ("emptiness", {TimerStateMachine.EMPTINESS, TimerStateMachine.TERMINATION}),
        ("expiration", {TimerStateMachine.TERMINATION}),
        ("registration", {TimerStateMachine.TERMINATION}),
        ("termination", {TimerStateMachine.TERMINATION}),
        ("interrupt", {TimerStateMachine.TERMINATION}),
        ("sweep", set(TimerStateMachine)),
        ("refresh_catalog", set()),
    ],
)
def test_a_function_starts_these_timers_and_no_other(
    control_plane: Template, name: str, timers: set[TimerStateMachine]
) -> None:
    statement = _of_function(control_plane, name).get("StartTimers", {"Resource": []})

    assert {entry.rsplit(":", 1)[1] for entry in listed(statement["Resource"])} == {
        timer.machine_name for timer in timers
    }


def test_only_these_functions_wake_or_invoke_others(control_plane: Template) -> None:
    rights = {name: _of_function(control_plane, name) for name in PLANS}

    assert {name for name, right in rights.items() if "Wake" in right} == {
        "expiration",
        "interrupt",
        "provision",
        "registration",
        "replacement",
        "sweep",
    }
    for invoked, by in {
        "Bind": {"provision", "registration", "sweep"},
        "Provision": {"interrupt", "provision"},
        "Sweep": {"sweep"},
    }.items():
        assert {name for name, given in rights.items() if f"Invoke{invoked}" in given} == by
    assert {name for name, right in rights.items() if "TakeWakeUps" in right} == {"provision"}
    assert rights["sweep"]["InvokeBind"]["Resource"].endswith(":function:dovetail-bind")


@pytest.mark.parametrize("name", sorted(PLANS))
def test_no_function_has_rights_over_machines_of_its_own(
    control_plane: Template, name: str
) -> None:
    actions = _actions(_of_function(control_plane, name))

    assert not actions & (ENDING | LAUNCHING | {"ec2:CreateTags", "iam:PassRole"})
    assert "dynamodb:Scan" not in actions


def test_refresh_catalog_reaches_no_cluster_and_no_ledger(control_plane: Template) -> None:
    rights = _of_function(control_plane, "refresh_catalog")

    catalogue = {"ReadCatalogue", "TellMissingKeys", "WriteCatalogue"}
    roles = {"FindLinkedRoles", "MakeLinkedRoles"}
    assert set(rights) == catalogue | roles | {"Log", "PutAside", "ReadOffers", "ReadPrices"}


def test_each_cluster_role_is_assumed_by_exactly_the_functions_that_need_it(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    trusted: dict[str, set[str]] = {}
    for role in clusters["demo"].of("AWS::IAM::Role"):
        for statement in role.properties["AssumeRolePolicyDocument"]["Statement"]:
            if "AWS" in statement["Principal"]:
                assert statement["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
                callers = statement["Condition"]["ArnEquals"]["aws:PrincipalArn"]
                trusted.setdefault(role.properties["RoleName"], set()).update(listed(callers))
    allowed: dict[str, set[str]] = {}
    for name in PLANS:
        own = control_plane[_functions_role(control_plane, name)].properties["RoleName"]
        patterns = _of_function(control_plane, name).get("AssumeClusterRole", {"Resource": []})
        for role_name in trusted:
            arn = f"arn:aws:iam::123456789012:role/{role_name}"
            if any(fnmatchcase(arn, entry) for entry in listed(patterns["Resource"])):
                principal = f"arn:aws:iam::123456789012:role/{own}"
                allowed.setdefault(role_name, set()).add(principal)

    assert trusted == allowed
    assert sorted(len(entry) for entry in trusted.values()) == [1, 3, 5]


def test_launch_and_terminate_never_share_a_role_or_a_function(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    for template in clusters.values():
        for role in template.of("AWS::IAM::Role"):
            actions = _actions(
                {
                    str(i): statement
                    for i, statement in enumerate(template.statements(role.logical_id))
                }
            )
            assert not (actions & LAUNCHING and actions & ENDING)
    for name in PLANS:
        patterns = _of_function(control_plane, name).get("AssumeClusterRole", {"Resource": []})
        assert len(listed(patterns["Resource"])) <= 1


def test_machines_are_launched_only_with_tags_that_name_the_cluster(
    clusters: Mapping[str, Template],
) -> None:
    statements = _of_cluster(clusters["demo"], ClusterRoleKind.LAUNCH)
    machines = statements["LaunchTaggedMachines"]
    naming = {f"aws:RequestTag/{key}": value for key, value in TAGS.items()}

    assert machines["Resource"] == "arn:aws:ec2:eu-west-1:123456789012:instance/*"
    assert machines["Condition"]["StringEquals"] == {
        **naming,
        "ec2:MetadataHttpTokens": "required",
    }
    assert machines["Condition"]["StringLike"] == {
        "aws:RequestTag/karpenter.sh/provisioner-name": "*"
    }
    assert machines["Condition"]["NumericLessThanEquals"] == {
        "ec2:MetadataHttpPutResponseHopLimit": "2"
    }
    assert statements["AskForTaggedFleets"]["Condition"] == {"StringEquals": naming}
    assert statements["MakeTemplates"]["Condition"] == {"StringEquals": naming}
    unbound = {
        sid
        for sid, statement in statements.items()
        if set(listed(statement["Action"])) & LAUNCHING and "Condition" not in statement
    }
    assert unbound == {"AskForImages", "AskForSpot"}
    for sid in unbound:
        assert not [entry for entry in listed(statements[sid]["Resource"]) if ":instance/" in entry]


def test_tags_are_set_only_while_something_is_made(clusters: Mapping[str, Template]) -> None:
    for template in clusters.values():
        for policy in template.policies():
            for property_ in policy.properties["PolicyDocument"]["Statement"]:
                if "ec2:CreateTags" in listed(property_["Action"]):
                    assert "ec2:CreateAction" in property_["Condition"]["StringEquals"]


def test_only_machines_and_templates_of_the_cluster_are_ended(
    clusters: Mapping[str, Template],
) -> None:
    statements = _of_cluster(clusters["demo"], ClusterRoleKind.TERMINATE)
    tagged = {f"aws:ResourceTag/{key}": value for key, value in TAGS.items()}

    assert statements["EndOurs"]["Condition"]["StringEquals"] == tagged
    assert statements["EndOurs"]["Condition"]["StringLike"] == {
        "aws:ResourceTag/karpenter.sh/provisioner-name": "*"
    }
    assert statements["DropOurTemplates"]["Condition"] == {"StringEquals": tagged}
    assert _actions(statements) == ENDING | {
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplates",
        "eks:DescribeCluster",
    }


def test_only_the_node_role_is_passed_and_only_to_ec2(clusters: Mapping[str, Template]) -> None:
    for template in clusters.values():
        passing = [
            property_
            for policy in template.policies()
            for property_ in policy.properties["PolicyDocument"]["Statement"]
            if "iam:PassRole" in listed(property_["Action"])
        ]
        (statement,) = passing
        role = template.node_role().properties["RoleName"]
        assert statement["Resource"].endswith(f":role/{role}")
        assert statement["Condition"]["StringEquals"]["iam:PassedToService"] == [
            "ec2.amazonaws.com",
            "ec2.amazonaws.com.cn",
        ]


def test_the_forwarder_may_send_to_one_bus_and_nothing_else(
    clusters: Mapping[str, Template],
) -> None:
    template = clusters["demo"]
    (association,) = template.of("AWS::EKS::PodIdentityAssociation")
    role = association.raw["Properties"]["RoleArn"]["Fn::GetAtt"][0]
    (statement,) = template.statements(role)
    (trust,) = template[role].properties["AssumeRolePolicyDocument"]["Statement"]

    assert listed(statement["Action"]) == ["events:PutEvents"]
    assert statement["Resource"] == "arn:aws:events:eu-west-1:123456789012:event-bus/dovetail"
    assert statement["Condition"] == {
        "ForAllValues:StringEquals": {
            "events:source": "dovetail.demo",
            "events:detail-type": list(FORWARDED),
        },
        "Null": {"events:source": "false", "events:detail-type": "false"},
    }
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Condition"]["StringEquals"]["aws:RequestTag/eks-cluster-name"] == "demo"
