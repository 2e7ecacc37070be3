import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.aws import ControlError
from tests.local.aws.lab import Lab
from tests.waiting import until


def body(messages: list[dict[str, Any]]) -> Any:
    assert len(messages) == 1
    return json.loads(messages[0]["Body"])


def test_a_queue_gets_the_whole_event(lab: Lab) -> None:
    url, arn = lab.queue()
    entry = lab.put(lab.bus({"Arn": arn}), {"pods": 3})
    event = body(lab.receive(url))
    assert event.pop("time").endswith("Z")
    assert event == {
        "version": "0",
        "id": entry["EventId"],
        "detail-type": "pod-pending",
        "source": "dovetail",
        "account": "123456789012",
        "region": "us-east-1",
        "resources": [],
        "detail": {"pods": 3},
    }


def test_event_that_does_not_match_is_not_delivered(lab: Lab) -> None:
    url, arn = lab.queue()
    lab.put(lab.bus({"Arn": arn}, pattern={"detail": {"leading": [True]}}), {"leading": False})
    assert lab.take(url) == []


def test_disabled_rule_delivers_nothing(lab: Lab) -> None:
    url, arn = lab.queue()
    bus = lab.bus({"Arn": arn})
    lab.aws.client("events").disable_rule(Name=bus, EventBusName=bus)
    lab.put(bus, {})
    assert lab.take(url) == []


def test_a_missing_target_harms_neither_the_caller_nor_the_others(lab: Lab) -> None:
    url, arn = lab.queue()
    dead_url, dead_arn = lab.queue()
    missing = "arn:aws:sqs:us-east-1:123456789012:absent"
    bus = lab.bus({"Arn": missing, "DeadLetterConfig": {"Arn": dead_arn}}, {"Arn": arn})
    assert "EventId" in lab.put(bus, {})
    assert len(lab.receive(url)) == 1
    letter = lab.receive(dead_url)[0]["MessageAttributes"]
    assert letter["ERROR_CODE"]["StringValue"] == "RESOURCE_NOT_FOUND"
    assert letter["TARGET_ARN"]["StringValue"] == missing


@pytest.mark.parametrize(
    "target",
    [
        {"Arn": "arn:aws:kinesis:us-east-1:123456789012:stream/s"},
        {"Arn": "arn:aws:sqs:us-east-1:123456789012:q", "InputPath": "$.detail"},
    ],
)
def test_a_target_that_is_not_emulated_is_refused_when_it_is_put(
    lab: Lab, target: dict[str, Any]
) -> None:
    with pytest.raises(ClientError, match="emulated"):
        lab.bus(target)


def test_a_schedule_that_is_not_emulated_is_refused_when_it_is_put(lab: Lab) -> None:
    events = lab.aws.client("events")
    with pytest.raises(ClientError, match=r"use rate\(\.\.\.\)"):
        events.put_rule(Name="daily", ScheduleExpression="cron(0 12 * * ? *)")
    assert events.list_rules(NamePrefix="daily")["Rules"] == []


def test_a_function_is_invoked_and_retried_as_its_own_settings_say(lab: Lab) -> None:
    name = lab.function()
    lab.aws.client("lambda").put_function_event_invoke_config(
        FunctionName=name, MaximumRetryAttempts=1
    )
    arn = f"arn:aws:lambda:us-east-1:123456789012:function:{name}"
    lab.put(lab.bus({"Arn": arn, "Input": '{"do": "fail"}'}), {})
    rows = until(lambda: [*lab.invocations(name)][1:])
    assert rows[0]["error"] == "LaunchFailed"


def test_events_can_be_lost_and_doubled_on_request(lab: Lab) -> None:
    url, arn = lab.queue()
    bus = lab.bus({"Arn": arn})
    lab.aws.control("events/drop", {"detail-type": "node-empty", "count": 1})
    lab.aws.control("events/duplicate", {"detail-type": "node-ready", "count": 1})
    lab.put(bus, {"n": 1}, detail_type="node-empty")
    lab.put(bus, {"n": 2}, detail_type="node-empty")
    lab.put(bus, {"n": 3}, detail_type="node-ready")
    events = [json.loads(row["Body"]) for row in lab.receive(url)]
    assert sorted(event["detail"]["n"] for event in events) == [2, 3, 3]
    assert len({event["id"] for event in events}) == 2


def test_put_events_refuses_what_aws_refuses(lab: Lab) -> None:
    events = lab.aws.client("events")
    entry = {"Source": "dovetail", "DetailType": "x", "Detail": "{}"}
    answer = events.put_events(
        Entries=[entry, entry | {"Detail": "["}, entry | {"Source": "aws.ec2"}]
    )
    assert [row.get("ErrorCode") for row in answer["Entries"]] == [
        None,
        "MalformedDetail",
        "NotAuthorizedForSourceException",
    ]
    for entries in ([entry] * 11, [entry | {"Detail": json.dumps({"a": "x" * 1_100_000})}]):
        with pytest.raises(ClientError) as caught:
            events.put_events(Entries=entries)
        assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_a_schedule_fires_and_matches_no_event(lab: Lab) -> None:
    url, arn = lab.queue()
    events = lab.aws.client("events")
    rule = lab.name("schedule")
    events.put_rule(Name=rule, ScheduleExpression="rate(1 minute)")
    events.put_targets(Rule=rule, Targets=[{"Id": "1", "Arn": arn}])
    lab.put("default", {})
    assert lab.take(url) == []
    lab.aws.control("schedules/fire", {"rule": rule})
    event = body(lab.receive(url))
    assert event["detail-type"] == "Scheduled Event"
    assert event["resources"] == [f"arn:aws:events:us-east-1:123456789012:rule/{rule}"]


def test_verbs_say_what_they_need(lab: Lab) -> None:
    with pytest.raises(ControlError, match="detail-type: None is not a non-empty text"):
        lab.aws.control("events/drop", {"count": 1})
    with pytest.raises(ControlError, match="count: -1 is not usable"):
        lab.aws.control("events/drop", {"detail-type": "x", "count": -1})
    with pytest.raises(ControlError, match="'absent' is not on the default bus"):
        lab.aws.control("schedules/fire", {"rule": "absent"})
    with pytest.raises(ControlError, match="control verb 'nonsense' is unknown"):
        lab.aws.control("nonsense")
