"""Filter criteria of a mapping: event patterns over the message, its JSON body included."""

import json
from typing import Any

from infra.local.aws.backends import moto_name


def passes(criteria: dict[str, Any] | None, message: Any) -> bool:
    """Whether a message matches any filter (all messages do when there is none)."""
    pattern_class = moto_name("events.models", "EventPattern")
    filters = (criteria or {}).get("Filters") or []
    if not filters:
        return True
    body: Any = message.body
    try:
        body = json.loads(message.body)
    except ValueError:
        body = message.body
    document = {"body": body, "messageId": message.id}
    return any(pattern_class.load(row["Pattern"]).matches_event(document) for row in filters)
