import io
import json
from datetime import timedelta
from typing import Any

import pytest

from shared.aws.dead_letters import DeadLetters
from shared.aws.outbox import SqsOutbox
from shared.aws.session import Session
from shared.model.errors import InvalidMessageError, NotFoundError, ThrottledError
from shared.model.messages.message import MessageKind, decode, decode_text
from shared.ports import Outbox, TimerKind
from tests.contract.aws.canned import canned
from tests.fakes.clock import FakeClock
from tests.fakes.outbox import FakeOutbox

DEFINITION = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})
PAYLOAD = {"version": 1, "cluster": "test", "wait_seconds": 30}


@pytest.fixture
def queue(aws: Session) -> str:
    return str(aws.client("sqs").create_queue(QueueName="wakes")["QueueUrl"])


@pytest.fixture
def sqs(aws: Session, queue: str, clock: FakeClock) -> SqsOutbox:
    role = "arn:aws:iam::123456789012:role/machine"
    machines = {
        kind: aws.client("stepfunctions").create_state_machine(
            name=kind.value, definition=DEFINITION, roleArn=role
        )["stateMachineArn"]
        for kind in TimerKind
    }
    return SqsOutbox(
        aws,
        queue_url=queue,
        state_machines=machines,
        clock=clock,
        functions={"bind": "bind", "provision": "provision", "sweep": "sweep"},
    )


@pytest.fixture(params=["fake", "sqs"])
def outbox(request: pytest.FixtureRequest) -> Outbox:
    if request.param == "fake":
        return FakeOutbox()
    outbox: Outbox = request.getfixturevalue("sqs")
    return outbox


def test_the_name_of_a_timer_is_taken_once(outbox: Outbox, clock: FakeClock) -> None:
    assert outbox.start_timer(TimerKind.EMPTINESS, "one", PAYLOAD) is True
    clock.advance(timedelta(seconds=1))
    assert outbox.start_timer(TimerKind.EMPTINESS, "one", PAYLOAD) is False
    assert outbox.start_timer(TimerKind.EMPTINESS, "one", {**PAYLOAD, "more": 1}) is False
    assert outbox.start_timer(TimerKind.EMPTINESS, "two", PAYLOAD) is True
    assert outbox.start_timer(TimerKind.EXPIRATION, "one", PAYLOAD) is True


def test_nothing_is_said_to_bind_about_no_nodes(outbox: Outbox) -> None:
    outbox.invoke_bind("test", [])


def received(aws: Session, queue: str) -> list[Any]:
    answer = aws.client("sqs").receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    return list(answer.get("Messages", []))


def test_a_wake_is_a_resume_message(
    aws: Session, sqs: SqsOutbox, queue: str, clock: FakeClock
) -> None:
    sqs.wake("test", timedelta(0))
    (record,) = received(aws, queue)
    message = decode_text(record["Body"])
    assert message.kind == MessageKind.RESUME
    assert message.cluster == "test"
    assert message.detail.at == clock.now()
    assert not message.detail.leading


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        (timedelta(milliseconds=500), 1),
        (timedelta(seconds=7), 7),
        (timedelta(hours=2), 900),
        (timedelta(seconds=-3), 0),
    ],
)
def test_delays_are_whole_seconds_up_to_fifteen_minutes(
    aws: Session,
    sqs: SqsOutbox,
    monkeypatch: pytest.MonkeyPatch,
    delay: timedelta,
    seconds: int,
) -> None:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(aws.client("sqs"), "send_message", lambda **call: sent.append(call))
    sqs.wake("test", delay)
    assert [entry["DelaySeconds"] for entry in sent] == [seconds]


def test_a_timer_gets_its_payload_and_when_it_was_started(
    aws: Session, sqs: SqsOutbox, clock: FakeClock
) -> None:
    sqs.start_timer(TimerKind.TERMINATION, "one", PAYLOAD)
    states = aws.client("stepfunctions")
    (machine,) = (
        state_machine["stateMachineArn"]
        for state_machine in states.list_state_machines()["stateMachines"]
        if state_machine["name"] == "termination"
    )
    (execution,) = states.list_executions(stateMachineArn=machine)["executions"]
    given = json.loads(states.describe_execution(executionArn=execution["executionArn"])["input"])
    assert given == {**PAYLOAD, "started_at": clock.now().isoformat()}


def test_a_machine_that_does_not_exist_is_not_found(aws: Session, clock: FakeClock) -> None:
    machines = {TimerKind.EMPTINESS: "arn:aws:states:us-east-1:123456789012:stateMachine:none"}
    outbox = SqsOutbox(aws, queue_url="x", state_machines=machines, functions={}, clock=clock)
    with pytest.raises(NotFoundError):
        outbox.start_timer(TimerKind.EMPTINESS, "one", PAYLOAD)


def test_bind_gets_node_ready_events_of_at_most_200_nodes(
    aws: Session, sqs: SqsOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []

    def invoke(**call: Any) -> dict[str, Any]:
        calls.append(call)
        return {"StatusCode": 202, "Payload": io.BytesIO()}

    monkeypatch.setattr(aws.client("lambda"), "invoke", invoke)
    nodes = [f"node-{n}" for n in range(201)]
    sqs.invoke_bind("test", nodes)
    assert {(entry["FunctionName"], entry["InvocationType"]) for entry in calls} == {
        ("bind", "Event")
    }
    messages = [decode(json.loads(entry["Payload"])) for entry in calls]
    assert {message.kind for message in messages} == {MessageKind.NODE_READY}
    assert [[ref.name for ref in message.detail.objects] for message in messages] == [
        nodes[:200],
        nodes[200:],
    ]


def test_a_look_is_a_message_and_invocations_are_calls_of_provision_and_sweep(
    aws: Session, sqs: SqsOutbox, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(aws.client("lambda"), "invoke", lambda **call: calls.append(call))
    sqs.evaluate("test")
    sqs.invoke_provision("test", evaluate=True, changed=True)
    sqs.invoke_provision("test", changed=True)
    sqs.invoke_provision("test")
    sqs.invoke_sweep("test")
    (record,) = received(aws, queue)
    assert decode_text(record["Body"]).kind == MessageKind.EVALUATE
    assert {call["InvocationType"] for call in calls} == {"Event"}
    messages = [(call["FunctionName"], decode(json.loads(call["Payload"]))) for call in calls]
    assert [(function, message.kind, message.cluster) for function, message in messages] == [
        ("provision", MessageKind.EVALUATE, "test"),
        ("provision", MessageKind.PROVISIONER_CHANGED, "test"),
        ("provision", MessageKind.RESUME, "test"),
        ("sweep", MessageKind.SWEEP, "test"),
    ]


def test_throttled_send_is_reported(aws: Session, sqs: SqsOutbox) -> None:
    with (
        canned(aws, "sqs", "SendMessage", (400, "RequestThrottled")),
        pytest.raises(ThrottledError),
    ):
        sqs.wake("test", timedelta(0))


def test_a_dead_letter_carries_the_record_and_the_reason(aws: Session, queue: str) -> None:
    letters = DeadLetters(aws, queue_url=queue)
    letters.send('{"source": "x"}', "source: 'x': expected 'dovetail.<cluster>'")
    letters.send("", "")
    letters.send("bell\x07 and \x00", "x" * 5000)
    found = [
        (entry["Body"], entry["MessageAttributes"]["reason"]["StringValue"])
        for entry in received(aws, queue)
    ]
    assert sorted(found) == sorted(
        [
            ('{"source": "x"}', "source: 'x': expected 'dovetail.<cluster>'"),
            (" ", "unknown"),
            ("bell\ufffd and \ufffd", "x" * 1000),
        ]
    )
    with pytest.raises(InvalidMessageError):
        decode_text(found[0][0])


def test_many_dead_letters_are_sent_in_few_calls_of_any_length(
    aws: Session, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    client = aws.client("sqs")
    send = client.send_message_batch

    def counted(**request: Any) -> Any:
        calls.append([entry["Id"] for entry in request["Entries"]])
        return send(**request)

    monkeypatch.setattr(client, "send_message_batch", counted)
    records = [(f"record {number}", "torn") for number in range(12)] + [("x" * 200_000, "long")] * 2
    assert DeadLetters(aws, queue_url=queue).send_all(records, in_time=lambda: True) == ()
    assert [len(call) for call in calls] == [10, 3, 1]
    assert attributes(aws, queue) == 14


def test_dead_letters_that_are_not_taken_are_reported(
    aws: Session, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = DeadLetters(aws, queue_url=queue)
    records = [(str(number), "torn") for number in range(25)]
    asked = iter([True, False, True])
    assert letters.send_all(records, in_time=lambda: next(asked)) == tuple(range(10, 20))
    with canned(aws, "sqs", "SendMessageBatch", (400, "RequestThrottled")):
        assert letters.send_all(records[:2], in_time=lambda: True) == (0, 1)
    failed = {"Failed": [{"Id": "1", "SenderFault": True, "Code": "InvalidMessageContents"}]}
    monkeypatch.setattr(aws.client("sqs"), "send_message_batch", lambda **_: failed)
    assert letters.send_all(records[:3], in_time=lambda: True) == (1,)


def attributes(aws: Session, queue: str) -> int:
    """Return how many messages a queue holds."""
    name = "ApproximateNumberOfMessages"
    answer = aws.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=[name])
    return int(answer["Attributes"][name])
