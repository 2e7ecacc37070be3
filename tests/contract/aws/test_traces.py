"""A trace that an event began goes on with whatever a function calls."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.aws.event_bus import EventBusPublisher
from shared.aws.session import Session
from shared.model.messages.message import Message, MessageDetail, MessageKind
from shared.runtime.forwarder import forwarder_parts
from shared.runtime.system import new_trace

TRACE = "Root=1-6920d2a0-0123456789abcdef01234567;Parent=53995c3f42cd8ad8;Sampled=1"


class Bus:
    """Takes entries as EventBridge does."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def put_events(self, *, Entries: Any) -> dict[str, Any]:  # noqa: N803
        self.entries += Entries
        return {"FailedEntryCount": 0}


def publish(**options: Any) -> dict[str, Any]:
    bus = Bus()
    wake = MessageDetail(
        cluster="demo", at=datetime(2026, 11, 21, tzinfo=UTC), leading=True, objects=()
    )
    message = Message(kind=MessageKind.POD_PENDING, detail=wake)
    EventBusPublisher("dovetail", client=bus, **options).publish([message])
    (entry,) = bus.entries
    return entry


def test_without_the_flag_an_event_carries_no_trace() -> None:
    assert "TraceHeader" not in publish()


def test_with_the_flag_each_event_begins_a_trace_of_its_own() -> None:
    first, second = (publish(trace=new_trace)["TraceHeader"] for _ in range(2))

    assert re.fullmatch(r"Root=1-[0-9a-f]{8}-[0-9a-f]{24};Sampled=1", first)
    assert first != second


@pytest.mark.parametrize(("value", "carried"), [("true", True), ("false", False)])
def test_the_forwarder_reads_the_flag(
    value: str, *, carried: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Any] = {}

    def publisher(*_: Any, **options: Any) -> None:
        made.update(options)

    monkeypatch.setattr("shared.runtime.forwarder.EventBusPublisher", publisher)
    monkeypatch.setattr("shared.runtime.forwarder.connect_kubeconfig", lambda *_, **__: None)
    forwarder_parts(
        {
            "DOVETAIL_CLUSTER": "demo",
            "DOVETAIL_BUS": "dovetail",
            "DOVETAIL_KUBECONFIG": str(tmp_path / "config"),
            "DOVETAIL_TRACING": value,
        }
    )
    assert (made["trace"] is not None) == carried


@pytest.mark.parametrize(
    ("service", "operation", "arguments"),
    [
        ("sqs", "send_message", {"QueueUrl": "https://sqs.test/1/q", "MessageBody": "{}"}),
        (
            "stepfunctions",
            "start_execution",
            {"stateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:one"},
        ),
        ("lambda", "invoke", {"FunctionName": "dovetail-bind"}),
        ("ec2", "describe_subnets", {}),
    ],
)
def test_calls_of_a_function_carry_its_trace(
    aws: Session,
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    operation: str,
    arguments: dict[str, Any],
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "dovetail-provision")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", TRACE)
    client = aws.client(service)
    told: list[str] = []

    def seen(request: Any, **_: Any) -> None:
        header = request.headers["X-Amzn-Trace-Id"]
        told.append(header.decode() if isinstance(header, bytes) else header)
        raise InterruptedError

    client.meta.events.register_first("before-send", seen)
    with pytest.raises(InterruptedError):
        getattr(client, operation)(**arguments)
    client.meta.events.unregister("before-send", seen)

    assert told == [TRACE]
