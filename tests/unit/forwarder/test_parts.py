"""Settings, the bus, health and log lines."""

import contextlib
import json
import logging
import socket
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from functions.forwarder import health
from functions.forwarder.health import serve_health
from functions.forwarder.logs import JsonFormatter
from shared.aws.event_bus import EventBusPublisher
from shared.model.errors import (
    NotFoundError,
    PermanentError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
)
from shared.model.messages.message import MessageKind, decode_text, make_message
from shared.runtime.forwarder import forwarder_parts
from shared.settings import ForwarderSettings, SettingsError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Events:
    """A double of the EventBridge client."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self.answer = answer
        self.entries: list[dict[str, Any]] = []

    def put_events(self, *, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.entries = list(Entries)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def failure(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutEvents"
    )


def test_a_message_becomes_an_entry_that_the_functions_can_read() -> None:
    events = Events({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]})
    message = make_message(MessageKind.NODE_READY, "c1", NOW, leading=True)
    assert EventBusPublisher("bus", client=events).publish([message]) == ()
    (entry,) = events.entries
    assert (entry["EventBusName"], entry["Source"], entry["Time"]) == ("bus", "dovetail.c1", NOW)
    record = {
        "source": entry["Source"],
        "detail-type": entry["DetailType"],
        "detail": json.loads(entry["Detail"]),
    }
    assert decode_text(json.dumps(record)) == message


def test_refused_entries_are_reported_by_their_position() -> None:
    entries = [{"EventId": "1"}, {"ErrorCode": "InternalFailure"}, {"ErrorCode": "Throttling"}]
    events = Events({"FailedEntryCount": 2, "Entries": entries})
    messages = [make_message(MessageKind.HEARTBEAT, "c1", NOW)] * 3
    assert EventBusPublisher("bus", client=events).publish(messages) == (1, 2)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failure("ThrottlingException"), ThrottledError),
        (failure("AccessDeniedException"), UnauthorizedError),
        (failure("ResourceNotFoundException"), NotFoundError),
        (failure("InternalException", 500), UnavailableError),
        (failure("ValidationException"), PermanentError),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1"), UnavailableError),
    ],
)
def test_errors_of_the_sdk_never_leak(error: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        EventBusPublisher("bus", client=Events(error)).publish(
            [make_message(MessageKind.HEARTBEAT, "c", NOW)]
        )


def test_the_client_is_made_on_first_use_with_time_outs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    publisher = EventBusPublisher("bus", region="us-west-2", timeout=timedelta(seconds=1))
    with pytest.raises(UnavailableError):
        publisher.publish([make_message(MessageKind.HEARTBEAT, "c", NOW)])


def test_settings_come_from_the_environment() -> None:
    environment = {"DOVETAIL_CLUSTER": "c1", "DOVETAIL_BUS": "bus", "OTHER": "x"}
    found = ForwarderSettings.from_environment(environment)
    assert (found.cluster, found.bus, found.kubeconfig, found.health_port) == ("c1", "bus", "", 0)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"DOVETAIL_BUS": "b"}, "DOVETAIL_CLUSTER: is missing: set it"),
        ({"DOVETAIL_CLUSTER": "c", "DOVETAIL_BUS": ""}, "DOVETAIL_BUS: "),
        (
            {"DOVETAIL_CLUSTER": "c", "DOVETAIL_BUS": "b", "DOVETAIL_HEALTH_PORT": "x"},
            "DOVETAIL_HEALTH_PORT: ",
        ),
    ],
)
def test_a_wrong_setting_is_named(environment: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        ForwarderSettings.from_environment(environment)


def test_parts_name_a_kubeconfig_that_cannot_be_read(tmp_path: Path) -> None:
    environment = {
        "DOVETAIL_CLUSTER": "c1",
        "DOVETAIL_BUS": "bus",
        "DOVETAIL_KUBECONFIG": str(tmp_path / "none"),
    }
    with pytest.raises(PermanentError, match="name a readable file"):
        forwarder_parts(environment)


def test_health_answers_by_its_checks() -> None:
    state = {"ok": True}
    server = serve_health(0, {"/healthz": lambda: state["ok"]})
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with urllib.request.urlopen(f"{url}/healthz") as answer:
            assert (answer.status, answer.read()) == (200, b"ok")
        state["ok"] = False
        for path, status in (("/healthz", 503), ("/nothing", 404)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(url + path)
            assert caught.value.code == status
            caught.value.close()
    finally:
        server.shutdown()
        server.server_close()


def test_texts_are_served_beside_the_checks() -> None:
    server = serve_health(0, {}, {"/metrics": ("text/x", lambda: "a 1\n")})
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/metrics"
        with urllib.request.urlopen(url) as answer:
            assert (answer.headers["Content-Type"], answer.read()) == ("text/x", b"a 1\n")
    finally:
        server.shutdown()
        server.server_close()


def test_connections_that_say_nothing_or_say_it_slowly_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "SECONDS", 0.2)
    server = serve_health(0, {"/healthz": lambda: True})
    address = ("127.0.0.1", server.server_address[1])
    try:
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(socket.create_connection(address)) for _ in range(40)]
            for connection in silent[:5]:
                connection.sendall(b"GET /healthz HTTP/1.0\r\nX: ")
            # Each is closed: those beyond the most at once, the others when their time is over.
            for connection in silent:
                with contextlib.suppress(ConnectionError):
                    while connection.recv(1000):
                        continue
        with urllib.request.urlopen(f"http://127.0.0.1:{address[1]}/healthz") as answer:
            assert answer.status == 200
    finally:
        server.shutdown()
        server.server_close()


def test_a_log_line_is_one_json_object() -> None:
    formatter = JsonFormatter("c1")
    record = logging.LogRecord("x", logging.INFO, "f", 1, "hello %s", ("you",), None)
    line = json.loads(formatter.format(record))
    assert (line["message"], line["cluster"], line["level"]) == ("hello you", "c1", "INFO")
    error = ValueError("because")
    record.exc_info = (type(error), error, None)
    assert "because" in json.loads(formatter.format(record))["exception"]
