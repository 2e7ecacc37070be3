"""The event bus: what PutEvents takes, which rules match, what tests may disturb."""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from infra.local.aws.backends import backend
from infra.local.aws.events.delivery import Deliveries

_MAX_REQUEST_BYTES = 1024 * 1024
_MAX_ENTRIES = 10
_REQUIRED = ("Source", "DetailType", "Detail")


class RequestRefusedError(Exception):
    """PutEvents refuses the whole request."""


class EventBus:
    """Front of moto's event backend."""

    def __init__(
        self,
        deliveries: Deliveries,
        *,
        account_id: str,
        region: str,
        harmed: Callable[[str, str], None],
    ) -> None:
        self._deliveries = deliveries
        self._harmed = harmed
        self._account_id = account_id
        self._region = region
        self._lock = Lock()
        self._drop: Counter[str] = Counter()
        self._duplicate: Counter[str] = Counter()

    def drop_next(self, detail_type: str, count: int) -> None:
        """Lose the next `count` events of a detail-type after they were accepted."""
        with self._lock:
            self._drop[detail_type] = count

    def duplicate_next(self, detail_type: str, count: int) -> None:
        """Deliver the next `count` events of a detail-type twice."""
        with self._lock:
            self._duplicate[detail_type] = count

    def clear(self) -> None:
        with self._lock:
            self._drop.clear()
            self._duplicate.clear()

    def put(self, events: Any, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Answer PutEvents: one result for each entry."""
        if len(entries) > _MAX_ENTRIES:
            raise RequestRefusedError(
                "1 validation error detected: Value at 'entries' failed to satisfy constraint: "
                f"Member must have length less than or equal to {_MAX_ENTRIES}"
            )
        if sum(entry_bytes(entry) for entry in entries) > _MAX_REQUEST_BYTES:
            raise RequestRefusedError("Total size of the entries in the request is over the limit.")
        return [self._put_one(events, entry) for entry in entries]

    def emit(self, event: Mapping[str, Any], *, bus: str = "default") -> str:
        """Put an event as an AWS service does, and return its id."""
        events = backend("events", self._account_id, self._region)
        return self._publish(events, bus, self._envelope(event))

    def fire(self, rule: Any) -> str:
        """Send the scheduled event of a rule to its targets now."""
        event = self._envelope(
            {
                "source": "aws.events",
                "detail-type": "Scheduled Event",
                "resources": [rule.arn],
                "detail": {},
            }
        )
        self._to_targets(rule, event)
        return str(event["id"])

    def match_and_send(self, rule: Any, event: Mapping[str, Any]) -> None:
        """Deliver an event to a rule's targets when the rule is on and its pattern matches."""
        if rule.state == "DISABLED" or not rule.event_pattern.dump():
            return  # a rule with only a schedule has no pattern, which matches nothing
        if rule.event_pattern.matches_event(event):
            self._to_targets(rule, event)

    def _to_targets(self, rule: Any, event: Mapping[str, Any]) -> None:
        for target in list(rule.targets):
            self._deliveries.send(event, target, rule.arn)

    def _envelope(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "version": "0",
            "id": event.get("id") or str(uuid.uuid4()),
            "detail-type": event["detail-type"],
            "source": event["source"],
            "account": self._account_id,
            "time": event.get("time", datetime.now(UTC).timestamp()),
            "region": self._region,
            "resources": list(event.get("resources") or ()),
            "detail": event.get("detail") or {},
        }

    def _put_one(self, events: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
        refusal = _refusal(entry)
        if refusal is not None:
            return {"ErrorCode": refusal[0], "ErrorMessage": refusal[1]}
        event = self._envelope(
            {
                "source": entry["Source"],
                "detail-type": entry["DetailType"],
                "detail": json.loads(entry["Detail"]),
                "resources": entry.get("Resources") or (),
            }
            | ({"time": entry["Time"]} if entry.get("Time") else {})
        )
        bus = events._normalize_event_bus_arn(entry.get("EventBusName"))
        return {"EventId": self._publish(events, bus, event)}

    def _publish(self, events: Any, bus: str, event: dict[str, Any]) -> str:
        for _ in range(self._copies(event["detail-type"])):
            for rule in list(events.describe_event_bus(bus).rules.values()):
                self.match_and_send(rule, event)
        return str(event["id"])

    def _copies(self, detail_type: str) -> int:
        with self._lock:
            if self._drop[detail_type] > 0:
                self._drop[detail_type] -= 1
                self._harmed("event lost", detail_type)
                return 0
            if self._duplicate[detail_type] > 0:
                self._duplicate[detail_type] -= 1
                self._harmed("event delivered twice", detail_type)
                return 2
        return 1


def entry_bytes(entry: Mapping[str, Any]) -> int:
    """Size of one entry as EventBridge counts it.

    Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/
    eb-putevent-size.html (2026-11-21).
    """
    total = 14 if entry.get("Time") else 0
    total += sum(len(str(entry.get(name) or "").encode()) for name in _REQUIRED)
    return total + sum(len(str(row).encode()) for row in entry.get("Resources") or ())


def _refusal(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    for name in _REQUIRED:
        if not entry.get(name):
            message = f"Parameter {name} is not valid. Reason: {name} is a required argument."
            return "InvalidArgument", message
    if str(entry["Source"]).startswith("aws."):
        return "NotAuthorizedForSourceException", "Not authorized for the source."
    try:
        detail = json.loads(entry["Detail"])
    except ValueError:
        detail = None
    if not isinstance(detail, dict):
        return "MalformedDetail", "Detail is malformed."
    return None
