"""The condition Dovetail writes into a Provisioner's status."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.manifests.fields import mapping, mappings

_ACTIVE: Final = "Active"


def active_condition(
    raw: Mapping[str, Any], *, active: bool, reason: str, message: str, at: datetime
) -> dict[str, Any] | None:
    """Return the status patch that sets the Active condition, None when it says so already.

    Args:
        raw: The Provisioner as read.
        at: Now: the transition's time if the status changes.
    """
    known = mappings(mapping(raw.get("status")).get("conditions"))
    wanted: dict[str, Any] = {
        "type": _ACTIVE,
        "status": "True" if active else "False",
        "reason": reason,
        "message": message,
    }
    old = next((one for one in known if one.get("type") == _ACTIVE), {})
    if all(old.get(key) == value for key, value in wanted.items()):
        return None
    same = old.get("status") == wanted["status"]
    moment = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted["lastTransitionTime"] = old.get("lastTransitionTime") if same else moment
    others = [one for one in known if one.get("type") != _ACTIVE]
    return {
        # The list is replaced as a whole: only if nobody else has changed it.
        "metadata": {"resourceVersion": mapping(raw.get("metadata")).get("resourceVersion")},
        "status": {"conditions": [*others, wanted]},
    }
