"""Rights on customer managed keys: given when a deployment names them, and for EC2's use only."""

import pytest

from tests.infra.policies import asked
from tests.infra.policies.evaluation import Ask
from tests.infra.policies.granted import Grants
from tests.infra.templates import Template, cluster_stack, synthesized

PROD = {"clusters": "prod", "max_price_per_hour": "prod:none"}
KEY = f"arn:aws:kms:{asked.REGION}:{asked.ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER = KEY.replace("1234abcd", "ffffffff")
USED = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
BY_EC2 = {"kms:ViaService": f"ec2.{asked.REGION}.amazonaws.com"}
FOR_EC2 = {**BY_EC2, "kms:GrantIsForAWSResource": "true"}


@pytest.fixture(scope="module")
def rights(tmp_path_factory: pytest.TempPathFactory) -> Grants:
    folder = synthesized(tmp_path_factory, "keys", **PROD, kms_keys=KEY)
    return Grants({"prod": Template(folder / f"{cluster_stack('prod')}.template.json")})


def ask(action: str, resource: str = KEY, *, right: str = "launch", **context: str) -> Ask:
    role = asked.cluster_role("prod", right)
    return Ask(principal=role, action=action, resource=resource, context=context)


@pytest.mark.parametrize("action", USED)
def test_a_launch_uses_the_key_through_ec2_only(rights: Grants, action: str) -> None:
    assert rights.allows(ask(action, **BY_EC2))
    assert not rights.allows(ask(action))
    assert not rights.allows(ask(action, **{"kms:ViaService": "s3.eu-west-1.amazonaws.com"}))
    assert not rights.allows(ask(action, OTHER, **BY_EC2))
    assert not rights.allows(ask(action, right="terminate", **BY_EC2))


def test_grants_are_made_for_volumes_only(rights: Grants) -> None:
    assert rights.allows(ask("kms:CreateGrant", **FOR_EC2))
    assert not rights.allows(ask("kms:CreateGrant", **BY_EC2))
    not_for_ec2 = {**FOR_EC2, "kms:GrantIsForAWSResource": "false"}
    assert not rights.allows(ask("kms:CreateGrant", **not_for_ec2))
    assert not rights.allows(ask("kms:CreateGrant", OTHER, **FOR_EC2))


@pytest.mark.parametrize(
    "action", ["kms:Encrypt", "kms:GenerateDataKey", "kms:ScheduleKeyDeletion"]
)
def test_nothing_more_may_be_done_with_the_key(rights: Grants, action: str) -> None:
    assert not rights.allows(ask(action, **FOR_EC2))
