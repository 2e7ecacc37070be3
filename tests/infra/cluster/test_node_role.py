"""What pods find in the node role, if they reach it: by default and with each choice."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.infra.policies import asked
from tests.infra.policies.evaluation import Ask
from tests.infra.policies.granted import Grants
from tests.infra.templates import Template, cluster_stack, synthesized

NEEDED = {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"}
PARAMETER = f"arn:aws:ssm:{asked.REGION}:{asked.ACCOUNT}:parameter/dovetail/clusters/prod"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesized(
        tmp_path_factory,
        "nodes",
        clusters="prod",
        max_price_per_hour="prod:none",
        nag="true",
        cni_role="own",
        ssm="on",
    )


@pytest.fixture(scope="module")
def chosen(folder: Path) -> Template:
    return Template(folder / f"{cluster_stack('prod')}.template.json")


def managed(template: Template) -> set[str]:
    """Return the names of the managed policies of the node role."""
    arns = template.node_role().properties["ManagedPolicyArns"]
    return {arn.rsplit("/", 1)[1] for arn in arns}


def test_by_default_nodes_have_what_they_join_with_and_the_network_plugin_uses(
    clusters: Mapping[str, Template],
) -> None:
    for template in clusters.values():
        assert managed(template) == NEEDED | {"AmazonEKS_CNI_Policy"}


def test_the_policy_of_the_network_plugin_is_removed_when_it_has_its_own_role(
    chosen: Template,
) -> None:
    assert managed(chosen) == NEEDED


@pytest.mark.parametrize(
    "action",
    [
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
    ],
)
def test_sessions_are_opened_where_they_are_chosen_and_in_this_region(
    chosen: Template, clusters: Mapping[str, Template], action: str
) -> None:
    def may(template: Template, region: str) -> bool:
        context = {"aws:RequestedRegion": region}
        role = asked.node_role("prod")
        ask = Ask(principal=role, action=action, resource="*", context=context)
        return Grants({"prod": template}).allows(ask)

    assert may(chosen, asked.REGION)
    assert not may(chosen, "us-east-1")
    assert not may(clusters["prod"], asked.REGION)


@pytest.mark.parametrize(
    "action",
    ["ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath", "ssm:SendCommand"],
)
def test_no_choice_lets_nodes_read_parameters(chosen: Template, action: str) -> None:
    here = {"aws:RequestedRegion": asked.REGION}
    ask = Ask(principal=asked.node_role("prod"), action=action, resource=PARAMETER, context=here)

    assert not Grants({"prod": chosen}).allows(ask)


def test_the_security_rules_find_nothing_unexplained_with_these_choices(folder: Path) -> None:
    report = json.loads((folder / "validation-report.json").read_text())

    assert report["pluginReports"][0]["violations"] == []
