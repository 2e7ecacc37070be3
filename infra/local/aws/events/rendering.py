"""What a target receives: the event, or a constant."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def plain_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event as targets see it: its time as text."""
    return {**event, "time": _time_text(event.get("time"))}


def render(target: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """Return the text a target gets, normally JSON."""
    return str(target.get("Input") or json.dumps(event))


def _time_text(value: Any) -> str:
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
        return value
    if isinstance(value, datetime):
        moment = value
    else:
        moment = datetime.fromtimestamp(float(value or 0), UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
