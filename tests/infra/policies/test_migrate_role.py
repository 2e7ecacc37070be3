"""The role of a migration: there only when asked for, and for the tags of owners alone."""

from collections.abc import Mapping

import pytest

from functions.cli.migrate.handover import DOVETAIL_TAGS, KARPENTER_TAGS
from functions.cli.migrate.node_claims import TAG_EKS_CLUSTER
from infra.aws.cluster_role_statements import EKS_CLUSTER_TAG, OWNER_TAGS
from shared.model import labels as keys
from shared.model.codec import from_json
from shared.settings import ClusterAttachment
from tests.infra.policies import asked
from tests.infra.policies.evaluation import Ask, Value, is_allowed
from tests.infra.templates import Template, cluster_stack, synthesized

ADMIN = f"arn:aws:iam::{asked.ACCOUNT}:role/Admin"
INSTANCE = f"arn:aws:ec2:{asked.REGION}:{asked.ACCOUNT}:instance/i-1"
OURS = {"aws:ResourceTag/kubernetes.io/cluster/prod": "owned"}


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Template]:
    """Two clusters, one of which is being migrated, with the security rules on."""
    folder = synthesized(
        tmp_path_factory,
        "migration",
        clusters="prod,staging",
        max_price_per_hour="prod:none,staging:none",
        migrators=f"prod:{ADMIN}",
        nag="true",
    )
    return {n: Template(folder / f"{cluster_stack(n)}.template.json") for n in ("prod", "staging")}


def roles(template: Template) -> list[str]:
    return [
        resource.logical_id
        for resource in template.of("AWS::IAM::Role")
        if str(resource.properties.get("RoleName", "")).endswith("-migrate")
    ]


def allows(template: Template, action: str, *tag_keys: str, **more: str) -> bool:
    (role,) = roles(template)
    named: dict[str, Value] = {"aws:TagKeys": tag_keys} if tag_keys else {}
    context = {**OURS, **named, **{k.replace("__", "/"): v for k, v in more.items()}}
    ask = Ask(principal=role, action=action, resource=INSTANCE, context=context)
    return is_allowed(ask, template.statements(role))


def test_the_role_is_there_only_for_the_cluster_and_as_long_as_it_is_asked_for(
    lent: Mapping[str, Template], clusters: Mapping[str, Template]
) -> None:
    assert len(roles(lent["prod"])) == 1
    assert roles(lent["staging"]) == []
    assert roles(clusters["prod"]) == []


def test_only_the_migrator_may_assume_it(lent: Mapping[str, Template]) -> None:
    (role,) = [r for r in lent["prod"].of("AWS::IAM::Role") if r.logical_id in roles(lent["prod"])]
    (statement,) = role.properties["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Condition"] == {"ArnEquals": {"aws:PrincipalArn": [ADMIN]}}


def test_the_attachment_names_it(lent: Mapping[str, Template]) -> None:
    found = {}
    for name, template in lent.items():
        (parameter,) = template.of("AWS::SSM::Parameter")
        value = parameter.properties["Value"]
        found[name] = from_json(ClusterAttachment, value).migrate_role
    assert found["staging"] == ""
    assert "MigrateRole" in found["prod"] or found["prod"].endswith("-migrate")


def test_it_changes_the_tags_of_both_owners_and_no_others(lent: Mapping[str, Template]) -> None:
    prod = lent["prod"]
    assert sorted(OWNER_TAGS) == sorted({*DOVETAIL_TAGS, *KARPENTER_TAGS})
    assert EKS_CLUSTER_TAG == TAG_EKS_CLUSTER
    assert allows(prod, "ec2:CreateTags", *OWNER_TAGS, EKS_CLUSTER_TAG)
    assert allows(prod, "ec2:DeleteTags", *OWNER_TAGS)
    for action in ("ec2:CreateTags", "ec2:DeleteTags"):
        assert not allows(prod, action, "Name")
        assert not allows(prod, action, keys.NODE_POOL, "kubernetes.io/cluster/prod")
    assert not allows(prod, "ec2:DeleteTags", EKS_CLUSTER_TAG)
    # Such a call would delete all tags.
    assert not allows(prod, "ec2:DeleteTags")
    assert not allows(prod, "ec2:TerminateInstances")


def test_it_reaches_no_instance_of_another_cluster_and_gives_none_away(
    lent: Mapping[str, Template],
) -> None:
    prod = lent["prod"]
    other = {"aws:ResourceTag__kubernetes.io/cluster/prod": "shared"}
    assert not allows(prod, "ec2:CreateTags", keys.NODE_POOL, **other)
    assert not allows(prod, "ec2:DeleteTags", keys.NODE_POOL, **other)
    for tag in (keys.TAG_CLUSTER, EKS_CLUSTER_TAG):
        request = f"aws:RequestTag__{tag}"
        assert allows(prod, "ec2:CreateTags", tag, **{request: "prod"})
        assert not allows(prod, "ec2:CreateTags", tag, **{request: "staging"})
