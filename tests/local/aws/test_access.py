"""Who may use the embedded AWS API, which runs code as the user who started it."""

import http.client
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from botocore import auth
from botocore.exceptions import ClientError

from infra.local.aws import ControlError, EmbeddedAws, call_verb
from infra.local.ready import announce
from tests.local.aws.lab import Lab

CALLS = [
    ("dynamodb", "list_tables"),
    ("ec2", "describe_instances"),
    ("eks", "list_clusters"),
    ("events", "list_rules"),
    ("iam", "list_roles"),
    ("lambda", "list_functions"),
    ("s3", "list_buckets"),
    ("sqs", "list_queues"),
    ("stepfunctions", "list_state_machines"),
    ("sts", "get_caller_identity"),
]


def refusal(lab: Lab, service: str, operation: str, key_id: str, secret: str) -> tuple[int, str]:
    client = boto3.client(
        service,
        endpoint_url=lab.aws.url,
        region_name="us-east-1",
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
    )
    with pytest.raises(ClientError) as refused:
        getattr(client, operation)()
    answer = refused.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


def send(
    lab: Lab, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    connection = http.client.HTTPConnection(lab.aws.url.removeprefix("http://"))
    connection.request(method, path, body=body, headers=dict(headers or {}))
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize(("service", "operation"), CALLS)
def test_another_key_is_refused_by_every_service(lab: Lab, service: str, operation: str) -> None:
    found = refusal(lab, service, operation, "testing", "testing")
    assert found == (403, "InvalidClientTokenId")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("POST", "/"),
        ("OPTIONS", "/"),
        ("GET", "/2015-03-31/functions/"),
        ("POST", "/2015-03-31/functions"),
        ("POST", "/2015-03-31/functions/launch/invocations"),
        ("PUT", "/bucket/key"),
        ("GET", "/moto-api/data.json"),
        ("POST", "/moto-api/reset"),
        ("POST", "/_dovetail/reset"),
        ("POST", "/_dovetail/status"),
    ],
)
def test_an_unsigned_request_is_refused_whatever_it_asks(lab: Lab, method: str, path: str) -> None:
    status, text = send(lab, method, path, b"{}", {"Content-Type": "text/plain"})
    assert status == 403
    assert "MissingAuthenticationToken" in text


def test_the_key_with_another_secret_is_refused(lab: Lab) -> None:
    found = refusal(lab, "sts", "get_caller_identity", lab.aws.access.key_id, "guessed")
    assert found == (403, "SignatureDoesNotMatch")


def test_each_server_has_a_random_key_of_its_own(lab: Lab) -> None:
    with EmbeddedAws() as other:
        assert other.access.key_id != lab.aws.access.key_id
        assert other.access.secret != lab.aws.access.secret
        with pytest.raises(ControlError, match="not known here"):
            call_verb(replace(other.access, url=lab.aws.url), "reset")


def test_only_the_user_that_started_it_reads_the_ready_file(lab: Lab, tmp_path: Path) -> None:
    announce(tmp_path / "ready.json", lab.aws.access.ready)
    assert (tmp_path / "ready.json").stat().st_mode & 0o777 == 0o600
    assert lab.aws.access.secret not in repr(lab.aws.access)


@pytest.mark.parametrize("path", ["/", "/_dovetail/status", "/2015-03-31/functions"])
@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Host": "rebound.example:4566"}, "the Host is not 127.0.0.1:"),
        ({"Host": "sts.us-east-1.amazonaws.com"}, "the Host is not 127.0.0.1:"),
        ({"Origin": "https://page.example"}, "the Origin is not http://127.0.0.1:"),
        ({"Origin": "null"}, "the Origin is not http://127.0.0.1:"),
    ],
)
def test_a_foreign_host_or_origin_is_refused_though_signed(
    lab: Lab, path: str, headers: Mapping[str, str], said: str
) -> None:
    signed = lab.sign("lambda", "POST", path, b"{}", headers=headers)
    status, text = send(lab, "POST", path, b"{}", signed)
    assert status == 403
    assert "AccessDenied" in text
    assert said in text


def test_its_own_origin_and_its_other_name_are_taken(lab: Lab) -> None:
    name = lab.aws.url.removeprefix("http://").replace("127.0.0.1", "localhost")
    headers = {"Host": name, "Origin": f"http://{name}"}
    signed = lab.sign("dovetail", "POST", "/_dovetail/status", b"{}", headers=headers)
    assert send(lab, "POST", "/_dovetail/status", b"{}", signed)[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/_dovetail/reset", b"{}"),
        ("PUT", "/_dovetail/status", b"{}"),
        ("POST", "/_dovetail/status?a=b", b"{}"),
        ("POST", "/_dovetail/status", b'{"a":1}'),
    ],
)
def test_a_signature_holds_for_one_request_only(
    lab: Lab, method: str, path: str, body: bytes
) -> None:
    signed = lab.sign("dovetail", "POST", "/_dovetail/status", b"{}")
    status, text = send(lab, method, path, body, signed)
    assert status == 403
    assert "SignatureDoesNotMatch" in text


def test_another_body_than_the_declared_one_is_refused(lab: Lab) -> None:
    digest = {"x-amz-content-sha256": "0" * 64}
    signed = lab.sign("s3", "PUT", "/bucket/key", b"one", headers=digest)
    assert "SignatureDoesNotMatch" in send(lab, "PUT", "/bucket/key", b"one", signed)[1]


@pytest.mark.parametrize("minutes", [-10, 10])
def test_an_old_signature_is_refused(
    lab: Lab, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = datetime.now(UTC) + timedelta(minutes=minutes)
    monkeypatch.setattr(auth, "get_current_datetime", lambda: then)
    signed = lab.sign("dovetail", "POST", "/_dovetail/status", b"{}")
    assert "ExpiredToken" in send(lab, "POST", "/_dovetail/status", b"{}", signed)[1]


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer token",
        "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=" + "0" * 64,
        "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=date, Signature="
        + "0" * 64,
        "AWS4-HMAC-SHA256 Credential=é/b/c/d/aws4_request, SignedHeaders=host, Signature="
        + "0" * 64,
    ],
)
def test_any_header_is_answered(lab: Lab, authorization: str) -> None:
    status, _ = send(lab, "POST", "/", b"{}", {"Authorization": authorization})
    assert status == 403
