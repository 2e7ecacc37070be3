import json

import pytest
from botocore.exceptions import ClientError

from tests.local.aws.lab import Lab
from tests.waiting import until


def defer(lab: Lab, name: str, event: object) -> int:
    answer = lab.aws.client("lambda").invoke(
        FunctionName=name, Payload=json.dumps(event), InvocationType="Event"
    )
    return int(answer["StatusCode"])


def test_an_event_is_accepted_and_run(lab: Lab) -> None:
    name = lab.function()
    assert defer(lab, name, {}) == 202
    until(lambda: lab.invocations(name))


def test_a_failing_event_is_tried_three_times(lab: Lab) -> None:
    name = lab.function()
    defer(lab, name, {"do": "fail"})
    until(lambda: len(lab.invocations(name)) == 3)


def test_attempts_end_at_the_configured_number_and_reach_the_destination(lab: Lab) -> None:
    name = lab.function()
    url, arn = lab.queue()
    lab.aws.client("lambda").put_function_event_invoke_config(
        FunctionName=name,
        MaximumRetryAttempts=0,
        DestinationConfig={"OnFailure": {"Destination": arn}},
    )
    defer(lab, name, {"do": "fail"})
    record = json.loads(lab.receive(url)[0]["Body"])
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestContext"]["approximateInvokeCount"] == 1
    assert record["requestPayload"] == {"do": "fail"}
    assert record["responsePayload"]["errorType"] == "LaunchFailed"
    assert len(lab.invocations(name)) == 1


def test_a_throttled_event_waits_without_using_an_attempt(lab: Lab) -> None:
    name = lab.function()
    client = lab.aws.client("lambda")
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    assert defer(lab, name, {}) == 202
    assert lab.invocations(name) == []
    client.delete_function_concurrency(FunctionName=name)
    assert len(until(lambda: lab.invocations(name))) == 1


def test_an_event_for_an_unknown_function_is_refused(lab: Lab) -> None:
    with pytest.raises(ClientError) as caught:
        defer(lab, "absent", {})
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"
