import contextlib
import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.local.aws.lab import Lab

POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": ["sqs:SendMessage", "s3:Get*", "dynamodb:PutItem"],
            "Resource": "arn:aws:sqs:us-east-1:123456789012:work",
            "Condition": {"StringEquals": {"aws:ResourceTag/cluster": "blue"}},
        }
    ],
}


@pytest.fixture
def role(lab: Lab) -> str:
    arn = lab.role()
    lab.aws.client("iam").put_role_policy(
        RoleName=arn.rsplit("/", 1)[-1], PolicyName="p", PolicyDocument=json.dumps(POLICY)
    )
    return arn


@pytest.fixture
def session(lab: Lab, role: str) -> boto3.session.Session:
    assumed = lab.aws.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    return boto3.session.Session(
        aws_access_key_id=assumed["AccessKeyId"],
        aws_secret_access_key=assumed["SecretAccessKey"],
        aws_session_token=assumed["SessionToken"],
        region_name="us-east-1",
    )


@pytest.fixture
def enforced(lab: Lab) -> None:
    lab.aws.control("permissions/mode", {"mode": "enforce"})


def lacking(lab: Lab, role: str) -> set[str]:
    rows = lab.aws.control("permissions/denied")["denied"]
    return {row["action"] for row in rows if role.endswith("/" + row["role"])}


def use_everything(lab: Lab, session: boto3.session.Session) -> None:
    def client(service: str) -> Any:
        return session.client(service, endpoint_url=lab.aws.url)

    url, _ = lab.queue()
    bucket, table = lab.name("bucket"), lab.name("table")
    lab.aws.client("s3").create_bucket(Bucket=bucket)
    lab.aws.client("s3").put_object(Bucket=bucket, Key="k", Body=b"v")
    lab.aws.client("dynamodb").create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client("sqs").send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "allowed"}])
    client("s3").get_object(Bucket=bucket, Key="k")
    client("s3").head_object(Bucket=bucket, Key="k")
    put = {"Put": {"TableName": table, "Item": {"pk": {"S": "1"}}}}
    client("dynamodb").transact_write_items(TransactItems=[put])
    client("sts").get_caller_identity()


def test_what_the_policy_allows_is_not_recorded(
    lab: Lab, role: str, session: boto3.session.Session
) -> None:
    use_everything(lab, session)
    assert lacking(lab, role) & {"sqs:SendMessage", "s3:GetObject", "dynamodb:PutItem"} == set()


def test_a_missing_permission_is_recorded(
    lab: Lab, role: str, session: boto3.session.Session
) -> None:
    session.client("ec2", endpoint_url=lab.aws.url).describe_instances()
    session.client("sqs", endpoint_url=lab.aws.url).list_queues()
    assert lacking(lab, role) >= {"ec2:DescribeInstances", "sqs:ListQueues"}


@pytest.mark.parametrize(
    ("service", "role"),
    [("ec2fleet", "AWSServiceRoleForEC2Fleet"), ("spot", "AWSServiceRoleForEC2Spot")],
)
def test_linked_roles_have_the_names_that_iam_gives_them(lab: Lab, service: str, role: str) -> None:
    iam = lab.aws.client("iam")
    # Another test of this folder, which shares the world, may have made it: EC2 does at first use.
    with contextlib.suppress(iam.exceptions.InvalidInputException):
        iam.create_service_linked_role(AWSServiceName=f"{service}.amazonaws.com")
    path = iam.get_role(RoleName=role)["Role"]["Path"]
    assert path == f"/aws-service-role/{service}.amazonaws.com/"


def test_instance_profiles_are_listed_by_path(lab: Lab) -> None:
    iam = lab.aws.client("iam")
    mine, other = lab.name("profile"), lab.name("profile")
    iam.create_instance_profile(InstanceProfileName=mine, Path="/karpenter/blue/")
    iam.create_instance_profile(InstanceProfileName=other)

    def names(**asked: str) -> set[str]:
        found = iam.list_instance_profiles(**asked)["InstanceProfiles"]
        return {row["InstanceProfileName"] for row in found}

    assert names() >= {mine, other}
    assert names(PathPrefix="/karpenter/blue/") == {mine}
    assert names(PathPrefix="/karpenter/green/") == set()


def test_a_missing_permission_is_refused_on_request(
    lab: Lab, session: boto3.session.Session, enforced: None
) -> None:
    use_everything(lab, session)
    for service, operation in (("ec2", "describe_instances"), ("s3", "list_buckets")):
        with pytest.raises(ClientError) as caught:
            getattr(session.client(service, endpoint_url=lab.aws.url), operation)()
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    lab.aws.client("ec2").describe_instances()


def test_a_role_that_does_not_trust_the_caller_is_recorded(
    lab: Lab, role: str, session: boto3.session.Session
) -> None:
    iam, sts = lab.aws.client("iam"), session.client("sts", endpoint_url=lab.aws.url)
    account = {"AWS": "arn:aws:iam::123456789012:root"}

    def target(principal: object, caller: str = "") -> str:
        statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
        if caller:
            statement["Condition"] = {"ArnEquals": {"aws:PrincipalArn": [caller]}}
        made = iam.create_role(
            RoleName=lab.name("target"),
            AssumeRolePolicyDocument=json.dumps({"Statement": [statement]}),
        )
        return str(made["Role"]["Arn"])

    friends = [target({"AWS": [role]}), target(account), target(account, role)]
    strangers = [lab.role(), target({"AWS": [lab.role()]}), target(account, lab.role())]
    for arn in (*friends, *strangers):
        sts.assume_role(RoleArn=arn, RoleSessionName="test")
    missing = {value for value in lacking(lab, role) if "without trust" in value}
    assert missing >= {f"sts:AssumeRole without trust of {arn}" for arn in strangers}
    assert not missing & {f"sts:AssumeRole without trust of {arn}" for arn in friends}
