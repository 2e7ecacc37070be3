"""Recursive loop detection of the embedded Lambda."""

import json

import pytest
from botocore.exceptions import ClientError

from infra.local.aws.execution.recursion import RecursiveLoopError, continued
from tests.local.aws.lab import Lab

# A function that sends each message on to its own queue until its number is reached.
AGAIN = """
import json, os
import boto3

sqs = boto3.client("sqs")

def handler(event, context):
    for record in event["Records"]:
        number = int(record["body"])
        if number < int(os.environ["MOST"]):
            sqs.send_message(QueueUrl=os.environ["QUEUE"], MessageBody=str(number + 1))
"""
# A function that invokes itself without waiting, as often as it is told.
ITSELF = """
import json
import boto3

lambda_ = boto3.client("lambda")

def handler(event, context):
    if event["left"]:
        lambda_.invoke(
            FunctionName=context.function_name,
            InvocationType="Event",
            Payload=json.dumps({"left": event["left"] - 1}),
        )
"""


def loop(lab: Lab, *, most: int) -> tuple[str, str]:
    """Connect a function to a queue that it sends to; return its name and its dead letters."""
    dead_url, dead_arn = lab.queue()
    policy = json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 1})
    url, arn = lab.queue(VisibilityTimeout="4", RedrivePolicy=policy)
    variables = {"QUEUE": url, "MOST": str(most)}
    name = lab.function(source=AGAIN, Environment={"Variables": variables})
    # A cold start must not outlast the visibility timeout.
    lab.invoke(name, {"Records": []})
    lab.aws.client("lambda").create_event_source_mapping(
        EventSourceArn=arn, FunctionName=name, BatchSize=1
    )
    lab.aws.client("sqs").send_message(QueueUrl=url, MessageBody="1")
    return name, dead_url


def test_a_loop_over_a_queue_ends_in_the_dead_letters_after_sixteen_invocations(lab: Lab) -> None:
    name, dead_url = loop(lab, most=1000)
    assert [row["Body"] for row in lab.receive(dead_url)] == ["17"]
    assert len(lab.invocations(name)) == 1 + 16


def test_a_function_that_invokes_itself_is_stopped_and_its_event_reaches_the_destination(
    lab: Lab,
) -> None:
    name = lab.function(source=ITSELF)
    url, arn = lab.queue()
    lab.aws.client("lambda").put_function_event_invoke_config(
        FunctionName=name, DestinationConfig={"OnFailure": {"Destination": arn}}
    )
    lab.invoke(name, {"left": 100}, InvocationType="Event")
    record = json.loads(lab.receive(url)[0]["Body"])
    assert record["requestPayload"] == {"left": 84}
    assert len(lab.invocations(name)) == 16


def test_waiting_caller_is_answered(lab: Lab) -> None:
    name = lab.function()
    arn = lab.aws.client("lambda").get_function_configuration(FunctionName=name)["FunctionArn"]
    trace = ""
    for _ in range(16):
        trace = continued(arn, [trace], allowed=False)
    with pytest.raises(RecursiveLoopError):
        continued(arn, [trace], allowed=False)
    assert continued("another", [trace], allowed=False)
    assert continued(arn, [trace], allowed=True)
    client = lab.aws.client("lambda")

    def add(params: dict[str, dict[str, str]], **_: object) -> None:
        params["headers"]["X-Amzn-Trace-Id"] = trace

    client.meta.events.register("before-call.lambda.Invoke", add)
    try:
        with pytest.raises(ClientError) as caught:
            lab.invoke(name, {})
    finally:
        client.meta.events.unregister("before-call.lambda.Invoke", add)
    assert caught.value.response["Error"]["Code"] == "RecursiveInvocationException"


def test_a_chain_that_parts_and_meets_counts_its_longest_way() -> None:
    short = continued("f", [], allowed=False)
    long = continued("f", [continued("f", [], allowed=False)], allowed=False)
    joined = continued("f", [short, long], allowed=False)
    assert joined.rpartition(":")[2] == "3"
