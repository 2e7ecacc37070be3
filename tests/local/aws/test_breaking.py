"""What breaks on purpose, through the server: throttled calls, killed functions, lost events."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from infra.local.aws import ControlError
from infra.local.aws.refusals import Throttle
from infra.local.harm import read_harm, since, told
from tests.local.aws.lab import Lab
from tests.waiting import until

ROLE = "arn:aws:sts::123456789012:assumed-role/provision/me"
LAUNCHES = """
import boto3

def handler(event, context):
    return boto3.client("ec2").create_fleet(**event)["FleetId"]
"""
CLUSTER = {"name": "blue", "endpoint": "https://127.0.0.1:6443", "ca_data": "Y2E="}


@pytest.fixture
def as_role(lab: Lab) -> Iterator[Any]:
    """Gives clients with the keys of a role, which do not try again."""
    given = lab.aws.client("sts").assume_role(RoleArn=lab.role(), RoleSessionName="me")
    keys, made = given["Credentials"], []

    def client(service: str) -> Any:
        made.append(
            boto3.client(
                service,
                endpoint_url=lab.aws.url,
                region_name="us-east-1",
                aws_access_key_id=keys["AccessKeyId"],
                aws_secret_access_key=keys["SecretAccessKey"],
                aws_session_token=keys["SessionToken"],
                config=Config(retries={"total_max_attempts": 1}),
            )
        )
        return made[-1]

    yield client
    for client_made in made:
        client_made.close()


def refusal(call: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as caught:
        call()
    answer = caught.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def harm(lab: Lab) -> dict[tuple[str, str], int]:
    return read_harm(lab.aws.control)


def test_a_throttled_service_refuses_calls_of_roles_alone(lab: Lab, as_role: Any) -> None:
    lab.aws.control("throttle", {"service": "ec2", "seconds": 60})
    assert refusal(as_role("ec2").describe_instances) == ("RequestLimitExceeded", 503)
    assert as_role("sqs").list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert lab.aws.client("ec2").describe_instances()["Reservations"] == []
    assert harm(lab) == {("call throttled", "ec2"): 1}
    lab.aws.control("throttle", {"service": "ec2", "seconds": 0})
    assert as_role("ec2").describe_instances()["Reservations"] == []


@pytest.mark.parametrize(
    ("service", "operation", "said"),
    [
        ("s3", "list_buckets", ("SlowDown", 503)),
        ("dynamodb", "list_tables", ("ThrottlingException", 400)),
        ("iam", "list_roles", ("ThrottlingException", 400)),
    ],
)
def test_each_service_throttles_in_its_own_words(
    lab: Lab, as_role: Any, service: str, operation: str, said: tuple[str, int]
) -> None:
    lab.aws.control("throttle", {"service": service, "seconds": 60})
    assert refusal(getattr(as_role(service), operation)) == said


def test_a_throttle_ends_by_itself() -> None:
    struck, clock = [], [0.0]
    throttle = Throttle(lambda kind, victim: struck.append((kind, victim)), lambda: clock[0])
    throttle.begin("ec2", 30)
    clock[0] = 29.9
    assert throttle.strikes(ROLE, "ec2")
    clock[0] = 30.0
    assert not throttle.strikes(ROLE, "ec2")
    assert struck == [("call throttled", "ec2")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"seconds": 5}, "service: None is not a non-empty text"),
        ({"service": "ec2", "seconds": "5"}, "seconds: '5' is not usable"),
        ({"service": "ec2"}, "seconds: None is not usable"),
    ],
)
def test_a_throttle_needs_a_service_and_seconds(
    lab: Lab, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ControlError, match=said):
        lab.aws.control("throttle", arguments)


def test_a_function_is_killed_between_launch_and_answer(lab: Lab) -> None:
    ec2 = lab.aws.client("ec2")
    seeded = lab.aws.control("seed", {"clusters": [CLUSTER]})
    image = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])
    ec2.create_launch_template(
        LaunchTemplateName="nodes",
        LaunchTemplateData={"ImageId": image["Images"][0]["ImageId"]},
    )
    name = lab.function(source=LAUNCHES)
    lab.aws.control("functions/kill-at-launch", {"function": name})
    options = [
        {"InstanceType": "m5.large", "SubnetId": seeded["clusters"]["blue"]["subnet_ids"][0]}
    ]
    template = {"LaunchTemplateName": "nodes", "Version": "$Latest"}
    request = {
        "Type": "instant",
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": template, "Overrides": options}],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": "on-demand",
        },
    }
    answer, error = lab.invoke(name, request)
    assert (error, answer["errorType"]) == ("Unhandled", "Runtime.ExitError")
    assert len(ec2.describe_instances()["Reservations"]) == 1
    # It is counted once it is killed, by when its caller may have been answered.
    assert until(lambda: harm(lab)) == {("function killed at launch", name): 1}
    fleet_id, error = lab.invoke(name, request)
    assert (error, fleet_id[:6]) == (None, "fleet-")


def test_a_function_that_is_not_there_is_not_killed(lab: Lab) -> None:
    with pytest.raises(ControlError, match=r"function: .*absent.*send the name of one that exists"):
        lab.aws.control("functions/kill-at-launch", {"function": "absent"})


def test_events_that_were_lost_or_doubled_are_counted(lab: Lab) -> None:
    bus = lab.bus({"Arn": lab.queue()[1]})
    lab.aws.control("events/duplicate", {"detail-type": "a", "count": 2})
    lab.aws.control("events/drop", {"detail-type": "b", "count": 1})
    for detail_type in "aab":
        lab.put(bus, {}, detail_type=detail_type)
    before = harm(lab)
    assert told(before) == ["events delivered twice: 2 of a", "events lost: 1 of b"]
    lab.aws.control("events/drop", {"detail-type": "b", "count": 1})
    lab.put(bus, {}, detail_type="b")
    assert since(before, harm(lab)) == {("event lost", "b"): 1}
    lab.aws.reset()
    assert harm(lab) == {}
