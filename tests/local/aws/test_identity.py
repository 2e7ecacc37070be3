import urllib.error
import urllib.request
from typing import Any

import boto3
import pytest
from botocore.signers import RequestSigner

from tests.local.aws.lab import Lab

Keys = dict[str, str]


@pytest.fixture
def keys(lab: Lab) -> Keys:
    sts = lab.aws.client("sts")
    credentials = sts.assume_role(RoleArn=lab.role(), RoleSessionName="provision")["Credentials"]
    return {
        "aws_access_key_id": credentials["AccessKeyId"],
        "aws_secret_access_key": credentials["SecretAccessKey"],
        "aws_session_token": credentials["SessionToken"],
    }


def presign(lab: Lab, keys: Keys, *, host: str | None = None, seconds: int = 60) -> str:
    session = boto3.session.Session(region_name="us-east-1", **keys)
    client = session.client("sts", endpoint_url=lab.aws.url)
    signer = RequestSigner(
        client.meta.service_model.service_id,
        "us-east-1",
        "sts",
        "v4",
        session.get_credentials(),
        session.events,
    )
    base = host or lab.aws.url
    request: dict[str, Any] = {
        "method": "GET",
        "url": f"{base}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": "blue"},
        "context": {},
    }
    url = signer.generate_presigned_url(
        request, region_name="us-east-1", expires_in=seconds, operation_name=""
    )
    return str(url)


def ask(url: str, *, cluster: str = "blue", accept: str = "text/xml") -> tuple[int, str]:
    headers = {"x-k8s-aws-id": cluster, "Accept": accept}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_signed_request_names_its_role(lab: Lab, keys: Keys) -> None:
    status, text = ask(presign(lab, keys))
    assert status == 200
    assert ":assumed-role/role-" in text
    assert "/provision</Arn>" in text


def test_the_answer_is_json_on_request(lab: Lab, keys: Keys) -> None:
    status, text = ask(presign(lab, keys), accept="application/json")
    assert status == 200
    assert '"Account": "123456789012"' in text


def test_a_request_signed_for_the_real_host_is_accepted(lab: Lab, keys: Keys) -> None:
    url = presign(lab, keys, host="https://sts.us-east-1.amazonaws.com")
    path = url.removeprefix("https://sts.us-east-1.amazonaws.com")
    assert ask(lab.aws.url + path)[0] == 200


def test_a_user_is_named_too(lab: Lab) -> None:
    name = lab.name("user")
    lab.aws.client("iam").create_user(UserName=name)
    key = lab.aws.client("iam").create_access_key(UserName=name)["AccessKey"]
    keys = {
        "aws_access_key_id": key["AccessKeyId"],
        "aws_secret_access_key": key["SecretAccessKey"],
    }
    status, text = ask(presign(lab, keys))
    assert status == 200
    assert f":user/{name}</Arn>" in text


def test_another_cluster_name_breaks_the_signature(lab: Lab, keys: Keys) -> None:
    status, text = ask(presign(lab, keys), cluster="green")
    assert status == 403
    assert "SignatureDoesNotMatch" in text


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("aws_secret_access_key", "wrong", "SignatureDoesNotMatch"),
        ("aws_access_key_id", "ASIAWRONGWRONGWRONG1", "InvalidClientTokenId"),
        ("aws_session_token", "wrong", "InvalidClientTokenId"),
    ],
)
def test_wrong_keys_are_refused(lab: Lab, keys: Keys, field: str, value: str, code: str) -> None:
    status, text = ask(presign(lab, keys | {field: value}))
    assert status == 403
    assert code in text


def test_a_life_longer_than_fifteen_minutes_is_refused(lab: Lab, keys: Keys) -> None:
    status, text = ask(presign(lab, keys, seconds=901))
    assert status == 403
    assert "ExpiredToken" in text


def test_a_changed_query_is_refused(lab: Lab, keys: Keys) -> None:
    assert ask(presign(lab, keys).replace("2011-06-15", "2011-06-16"))[0] == 403


def test_an_unsigned_request_is_refused(lab: Lab) -> None:
    assert ask(f"{lab.aws.url}/?Action=GetCallerIdentity&Version=2011-06-15")[0] == 403
