"""Publishing on the event bus.

Source: https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html (2026-08).
"""

import json
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

from shared.aws.errors import translated
from shared.model.messages.message import Message, encode


class EventsApi(Protocol):
    """The only call of the EventBridge client in use."""

    def put_events(self, *, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Publish up to 10 entries."""
        ...


class EventBusPublisher:
    """Publishes messages; one attempt a call: the caller decides about retries.

    Args:
        bus: Name or ARN of the bus.
        region: Name of the Region; None for the SDK's default.
        timeout: Longest wait for an answer.
        client: The EventBridge client; created on first use when None.
        trace: Returns the X-Ray trace header of a new message; None for no traces.
    """

    def __init__(
        self,
        bus: str,
        *,
        region: str | None = None,
        timeout: timedelta = timedelta(seconds=5),
        client: EventsApi | None = None,
        trace: Callable[[], str] | None = None,
    ) -> None:
        self._bus = bus
        self._region = region
        self._seconds = timeout.total_seconds()
        self._client = client
        self._trace = trace
        self._lock = threading.Lock()

    def publish(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Publish up to 10 messages in one call; return the positions of refused messages.

        Raises:
            AutoscalerError: If none was published, or the outcome is unknown:
                UnavailableError, ThrottledError, UnauthorizedError, or NotFoundError for the bus.
        """
        entries = [self._entry(message) for message in messages]
        with translated("events PutEvents"):
            answer = self._events().put_events(Entries=entries)
        if not answer.get("FailedEntryCount"):
            return ()
        results = answer.get("Entries", [])
        return tuple(number for number, result in enumerate(results) if result.get("ErrorCode"))

    def _events(self) -> EventsApi:
        with self._lock:
            if self._client is None:
                self._client = _make_client(self._region, self._seconds)
            return self._client

    def _entry(self, message: Message) -> dict[str, Any]:
        event = encode(message)
        return {
            "EventBusName": self._bus,
            "Source": event["source"],
            "DetailType": event["detail-type"],
            "Detail": json.dumps(event["detail"], separators=(",", ":")),
            "Time": message.detail.at,
            # The bus passes the trace to its targets, and these to the services that they call.
            **({"TraceHeader": self._trace()} if self._trace is not None else {}),
        }


def _make_client(region: str | None, seconds: float) -> EventsApi:
    """Return a client of botocore: boto3's resource layer would only cost memory here."""
    from botocore.config import Config  # noqa: PLC0415 - slow to import, only the forwarder needs it
    from botocore.session import get_session  # noqa: PLC0415 - likewise

    client: EventsApi = get_session().create_client(
        "events",
        region_name=region,
        config=Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=min(seconds, 3.0),
            read_timeout=seconds,
        ),
    )
    return client
