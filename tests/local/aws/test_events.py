import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.aws import ControlError
from tests.local.aws.lab import Lab


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
    assert lab.receive(url, seconds=0) == []


def test_disabled_rule_delivers_nothing(lab: Lab) -> None:
    url, arn = lab.queue()
    bus = lab.bus({"Arn": arn})
    lab.aws.client("events").disable_rule(Name=bus, EventBusName=bus)
    lab.put(bus, {})
    assert lab.receive(url, seconds=0) == []


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


def test_a_delivery_is_tried_again(lab: Lab) -> None:
    url, arn = lab.queue()
    bus = lab.bus({"Arn": arn})
    lab.aws.control("events/fail", {"target": arn, "count": 1})
    lab.put(bus, {"try": 1})
    assert body(lab.receive(url))["detail"] == {"try": 1}


def test_delivery_without_retries_ends_in_the_dead_letters(lab: Lab) -> None:
    url, arn = lab.queue()
    dead_url, dead_arn = lab.queue()
    policy = {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    bus = lab.bus({"Arn": arn, "RetryPolicy": policy, "DeadLetterConfig": {"Arn": dead_arn}})
    lab.aws.control("events/fail", {"target": arn, "count": 1})
    lab.put(bus, {"try": 1})
    letter = lab.receive(dead_url)[0]
    assert json.loads(letter["Body"])["detail"] == {"try": 1}
    condition = letter["MessageAttributes"]["EXHAUSTED_RETRY_CONDITION"]["StringValue"]
    assert condition == "MaximumRetryAttempts"
    assert lab.receive(url, seconds=0) == []


def test_a_function_is_invoked_and_retried_as_its_own_settings_say(lab: Lab) -> None:
    name = lab.function()
    lab.aws.client("lambda").put_function_event_invoke_config(
        FunctionName=name, MaximumRetryAttempts=1
    )
    arn = f"arn:aws:lambda:us-east-1:123456789012:function:{name}"
    lab.put(lab.bus({"Arn": arn, "Input": '{"do": "fail"}'}), {})
    rows = lab.wait(lambda: [*lab.invocations(name)][1:])
    assert rows[0]["error"] == "LaunchFailed"


def test_input_transformers_are_filled(lab: Lab) -> None:
    url, arn = lab.queue()
    transformer = {
        "InputPathsMap": {"pod": "$.detail.pod", "since": "$.detail.since", "gone": "$.detail.no"},
        "InputTemplate": '{"pod": <pod>, "since": <since>, "gone": <gone>, "said": "<pod> <pod>"}',
    }
    lab.put(lab.bus({"Arn": arn, "InputTransformer": transformer}), {"pod": 'a"b', "since": [1]})
    assert body(lab.receive(url)) == {
        "pod": 'a"b',
        "since": [1],
        "gone": "",
        "said": 'a"b a"b',
    }


def test_an_input_path_picks_a_part(lab: Lab) -> None:
    url, arn = lab.queue()
    lab.put(lab.bus({"Arn": arn, "InputPath": "$.detail"}), {"pods": 3})
    assert body(lab.receive(url)) == {"pods": 3}


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


def test_an_aws_event_arrives_on_the_default_bus(lab: Lab) -> None:
    url, arn = lab.queue()
    events = lab.aws.client("events")
    rule = lab.name("rule")
    events.put_rule(Name=rule, EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.put_targets(Rule=rule, Targets=[{"Id": "1", "Arn": arn}])
    given = {"source": "aws.ec2", "detail-type": "x", "detail": {"instance-id": "i-1"}}
    lab.aws.control("events/emit", given)
    assert body(lab.receive(url))["detail"] == {"instance-id": "i-1"}
    events.remove_targets(Rule=rule, Ids=["1"])
    events.delete_rule(Name=rule)


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


def test_an_archive_can_be_replayed(lab: Lab) -> None:
    url, arn = lab.queue()
    bus = lab.bus({"Arn": arn})
    bus_arn = lab.aws.client("events").describe_event_bus(Name=bus)["Arn"]
    archive = lab.aws.client("events").create_archive(ArchiveName=bus, EventSourceArn=bus_arn)
    lab.put(bus, {"n": 1})
    lab.receive(url)
    lab.aws.client("events").start_replay(
        ReplayName=bus,
        EventSourceArn=archive["ArchiveArn"],
        EventStartTime=0,
        EventEndTime=4_000_000_000,
        Destination={"Arn": bus_arn},
    )
    assert body(lab.receive(url))["detail"] == {"n": 1}


def test_a_schedule_fires_and_matches_no_event(lab: Lab) -> None:
    url, arn = lab.queue()
    events = lab.aws.client("events")
    rule = lab.name("schedule")
    events.put_rule(Name=rule, ScheduleExpression="rate(1 minute)")
    events.put_targets(Rule=rule, Targets=[{"Id": "1", "Arn": arn}])
    given = {"source": "aws.ec2", "detail-type": "x", "detail": {}}
    lab.aws.control("events/emit", given)
    assert lab.receive(url, seconds=0) == []
    lab.aws.control("schedules/fire", {"rule": rule})
    event = body(lab.receive(url))
    assert event["detail-type"] == "Scheduled Event"
    assert event["resources"] == [f"arn:aws:events:us-east-1:123456789012:rule/{rule}"]


def test_verbs_say_what_they_need(lab: Lab) -> None:
    with pytest.raises(ControlError, match="detail-type is None: give a text"):
        lab.aws.control("events/drop", {"count": 1})
    with pytest.raises(ControlError, match="count is -1: give a number"):
        lab.aws.control("events/drop", {"detail-type": "x", "count": -1})
    with pytest.raises(ControlError, match="'absent' is not on the default bus"):
        lab.aws.control("schedules/fire", {"rule": "absent"})
    with pytest.raises(ControlError, match="control verb 'nonsense' is unknown"):
        lab.aws.control("nonsense")
