import base64
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import ReadTimeoutError

from shared.aws.eks_token import EksToken, sts_url
from shared.aws.errors import translated
from shared.aws.session import Session
from shared.model.errors import UnauthorizedError, UnavailableError
from tests.contract.aws.canned import canned
from tests.contract.aws.values import REGION
from tests.contract.kube.scripted import Answer, scripted
from tests.fakes.clock import FakeClock

ROLE = "arn:aws:iam::123456789012:role/test-launch"
OTHER = "arn:aws:iam::123456789012:role/test-terminate"


@pytest.fixture
def own(aws: Session, clock: FakeClock) -> Session:
    """A session whose clients and roles belong to this test."""
    return Session(region=REGION, api_timeout=timedelta(seconds=7), name="provision", now=clock.now)


def assume(own: Session, clock: FakeClock, key: str, minutes: int) -> dict[str, Any]:
    return {
        "Credentials": {
            "AccessKeyId": key,
            "SecretAccessKey": "s" * 40,
            "SessionToken": f"token-{key}",
            "Expiration": clock.now() + timedelta(minutes=minutes),
        }
    }


def test_clients_try_once_within_the_time_out(own: Session) -> None:
    config = own.client("sqs").meta.config
    assert config.retries["total_max_attempts"] == 1
    assert config.read_timeout == 7.0
    assert config.connect_timeout < 7.0
    assert own.client("sqs") is own.client("sqs")
    patient = own.with_attempts(4).client("sqs").meta.config
    assert patient.retries["total_max_attempts"] == 4


def test_a_caller_whom_aws_does_not_know_is_refused(own: Session) -> None:
    own.require_caller()
    with (
        canned(own, "sts", "GetCallerIdentity", (403, "ExpiredToken")),
        pytest.raises(UnauthorizedError, match="sts GetCallerIdentity"),
    ):
        own.require_caller()


def test_a_connection_that_was_closed_meanwhile_is_replaced_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    found = Answer(body={"Parameters": []})

    def ask(*script: Answer) -> int:
        with scripted(script) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
            client = Session(region=REGION).client("ssm")
            try:
                with translated("ssm GetParameters"):
                    client.get_parameters(Names=["a"])
            finally:
                client.close()
            return len(server.requests)

    assert ask(found) == 1
    assert ask(Answer(drop=True), found) == 2
    with pytest.raises(UnavailableError, match="ConnectionClosedError"):
        ask(Answer(drop=True), Answer(drop=True), found)
    with pytest.raises(UnavailableError, match="InternalServerError"):
        ask(Answer(status=500, body={"__type": "InternalServerError"}), found)


def test_a_client_may_work_in_another_region(own: Session) -> None:
    assert own.client("sqs", region="eu-west-1").meta.region_name == "eu-west-1"
    assert own.client("sqs").meta.region_name == REGION


def test_roles_are_assumed_once_under_the_functions_name(own: Session, clock: FakeClock) -> None:
    answers = [assume(own, clock, "KEY1", 60), assume(own, clock, "KEY2", 60)]
    with canned(own, "sts", "AssumeRole", *answers) as asked:
        first = own.client("sqs", role=ROLE)
        assert own.client("sqs", role=ROLE) is first
        own.client("sqs", role=OTHER)
        own.client("sqs")
        assert len(asked) == 2
        assert asked[0]["body"]["RoleArn"] == ROLE
        assert asked[0]["body"]["RoleSessionName"] == "provision"
    assert own.signing_credentials(ROLE).access_key == "KEY1"
    assert own.signing_credentials(OTHER).access_key == "KEY2"
    assert own.signing_credentials().access_key not in {"KEY1", "KEY2"}


def test_credentials_are_renewed_five_minutes_before_they_end(
    own: Session, clock: FakeClock
) -> None:
    answers = [assume(own, clock, "KEY1", 60), assume(own, clock, "KEY2", 200)]
    with canned(own, "sts", "AssumeRole", *answers):
        first = own.client("sqs", role=ROLE)
        clock.advance(timedelta(minutes=54, seconds=59))
        assert own.client("sqs", role=ROLE) is first
        clock.advance(timedelta(seconds=1))
        assert own.client("sqs", role=ROLE) is not first
    assert own.signing_credentials(ROLE).access_key == "KEY2"


def test_role_that_may_not_be_assumed_is_reported(own: Session) -> None:
    with (
        canned(own, "sts", "AssumeRole", (403, "AccessDenied")),
        pytest.raises(UnauthorizedError, match="test-launch"),
    ):
        own.client("sqs", role=ROLE)
    silence = ReadTimeoutError(endpoint_url="e", error="x")
    with canned(own, "sts", "AssumeRole", silence), pytest.raises(UnavailableError):
        own.client("sqs", role=ROLE)


def url_of(token: str) -> str:
    prefix, _, rest = token.rpartition(".")
    assert prefix == "k8s-aws-v1"
    assert "=" not in rest
    return base64.urlsafe_b64decode(rest + "=" * (-len(rest) % 4)).decode()


def test_a_token_is_a_presigned_question_bound_to_the_cluster(
    own: Session, clock: FakeClock
) -> None:
    with canned(own, "sts", "AssumeRole", assume(own, clock, "KEY1", 60)):
        token = EksToken(own, cluster="test", role=ROLE, clock=clock)()
    parts = urlsplit(url_of(token))
    query = {key: value[0] for key, value in parse_qs(parts.query).items()}
    assert f"{parts.scheme}://{parts.netloc}" == f"https://sts.{REGION}.amazonaws.com"
    assert query["Action"] == "GetCallerIdentity"
    assert query["Version"] == "2011-06-15"
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Credential"].startswith("KEY1/")
    assert query["X-Amz-Credential"].endswith(f"/{REGION}/sts/aws4_request")
    assert query["X-Amz-Security-Token"] == "token-KEY1"
    assert int(query["X-Amz-Expires"]) <= 900


def test_a_token_is_used_for_ten_minutes(own: Session, clock: FakeClock) -> None:
    ends = assume(own, clock, "KEY1", 60)
    later = assume(own, clock, "KEY2", 120)
    with canned(own, "sts", "AssumeRole", ends, later) as asked:
        token = EksToken(own, cluster="test", role=ROLE, clock=clock)
        token()
        assert token._use_until == clock.now() + timedelta(minutes=10)
        clock.advance(timedelta(minutes=50))
        token()
        # No longer than the credentials it was signed with.
        assert token._use_until == clock.now() + timedelta(minutes=9)
        clock.advance(timedelta(minutes=9))
        assert "KEY2" in url_of(token())
        assert len(asked) == 2


def test_tokens_of_two_clusters_differ(own: Session, clock: FakeClock) -> None:
    one = EksToken(own, cluster="one", role="", clock=clock)
    two = EksToken(own, cluster="two", role="", clock=clock)
    assert url_of(one()).split("X-Amz-Signature")[1] != url_of(two()).split("X-Amz-Signature")[1]
    assert one() == one()


def test_china_has_its_own_suffix() -> None:
    assert sts_url("cn-north-1") == "https://sts.cn-north-1.amazonaws.com.cn"
    assert sts_url("eu-west-1") == "https://sts.eu-west-1.amazonaws.com"
