import json
import time
from typing import Any

from tests.local.aws.lab import Lab
from tests.waiting import until


def connect(lab: Lab, queue_arn: str, name: str, **settings: Any) -> str:
    given = {"EventSourceArn": queue_arn, "FunctionName": name} | settings
    return str(lab.aws.client("lambda").create_event_source_mapping(**given)["UUID"])


def batches(lab: Lab, name: str) -> list[list[str]]:
    """The batches a function printed, oldest first."""
    logs = lab.aws.client("logs")
    group = f"/aws/lambda/{name}"
    until(lambda: logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"])
    events = logs.filter_log_events(logGroupName=group)["events"]
    lines = [event["message"] for event in events if event["message"].startswith('{"batch"')]
    return [json.loads(line)["batch"] for line in lines]


def left_in(lab: Lab, url: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = lab.aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return sum(int(answer["Attributes"][name]) for name in names)


def test_a_window_makes_one_batch_of_a_burst(lab: Lab) -> None:
    name = lab.function()
    url, arn = lab.queue()
    bus = lab.bus({"Arn": arn})
    connect(lab, arn, name, BatchSize=120, MaximumBatchingWindowInSeconds=300)
    lab.invoke(name, {})
    for number in range(0, 120, 10):
        lab.put(bus, *({"number": number + more} for more in range(10)))
    until(lambda: left_in(lab, url) == 0)
    assert len(lab.invocations(name)) == 2
    sizes = until(lambda: [len(batch) for batch in batches(lab, name)])
    assert sizes == [120]


def test_a_small_batch_size_is_kept(lab: Lab) -> None:
    name = lab.function()
    url, arn = lab.queue()
    for number in range(7):
        lab.aws.client("sqs").send_message(QueueUrl=url, MessageBody=str(number))
    connect(lab, arn, name, BatchSize=3)
    until(lambda: left_in(lab, url) == 0)
    until(lambda: sum(map(len, batches(lab, name))) == 7)
    assert max(map(len, batches(lab, name))) == 3


def test_only_the_failed_items_of_a_batch_come_again(lab: Lab) -> None:
    name = lab.function(Environment={"Variables": {"BAD": "bad"}})
    lab.invoke(name, {})
    url, arn = lab.queue(VisibilityTimeout="10")
    for body in ("good", "bad", "fine"):
        lab.aws.client("sqs").send_message(QueueUrl=url, MessageBody=body)
    settings = {"FunctionResponseTypes": ["ReportBatchItemFailures"]}
    connect(lab, arn, name, BatchSize=10, **settings)
    until(lambda: left_in(lab, url) == 0)
    until(lambda: len(batches(lab, name)) == 2)
    assert [sorted(batch) for batch in batches(lab, name)] == [["bad", "fine", "good"], ["bad"]]


def test_message_that_always_fails_ends_in_the_dead_letters(lab: Lab) -> None:
    source = "def handler(event, context):\n    raise ValueError('always')\n"
    name = lab.function(source=source)
    dead_url, dead_arn = lab.queue()
    policy = json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 1})
    url, arn = lab.queue(VisibilityTimeout="1", RedrivePolicy=policy)
    lab.aws.client("sqs").send_message(QueueUrl=url, MessageBody="poison")
    connect(lab, arn, name, BatchSize=1)
    assert [row["Body"] for row in lab.receive(dead_url)] == ["poison"]
    assert len(until(lambda: lab.invocations(name))) == 1


def test_a_disabled_mapping_takes_nothing(lab: Lab) -> None:
    name = lab.function()
    url, arn = lab.queue()
    uuid = connect(lab, arn, name, Enabled=False)
    lab.aws.client("sqs").send_message(QueueUrl=url, MessageBody="early")
    time.sleep(0.6)
    assert lab.invocations(name) == []
    lab.aws.client("lambda").update_event_source_mapping(UUID=uuid, Enabled=True)
    until(lambda: lab.invocations(name))
