"""How conditions are written into the status of Provisioners and AWSNodeTemplates."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.manifests.fields import mapping, mappings
from shared.ports import TemplateStatus

_READY: Final = "Ready"


def provisioner_condition(
    raw: Mapping[str, Any], kind: str, said: Mapping[str, str], *, holds: bool, at: datetime
) -> dict[str, Any] | None:
    """Return the status patch that sets a condition, None when it says so already.

    Args:
        raw: The Provisioner as read.
        said: Reason and message.
        at: Now: the transition's time if the status changes.
    """
    found = _with_condition(raw, kind, said, holds=holds, at=at)
    return None if found is None else _patch(raw, {"conditions": found})


def template_status(
    raw: Mapping[str, Any], status: TemplateStatus, *, at: datetime
) -> dict[str, Any] | None:
    """Return the status patch of an AWSNodeTemplate, None when it says so already.

    Args:
        raw: The AWSNodeTemplate as read.
        at: Now: the transition's time if its readiness changes.
    """
    wanted = {
        "subnets": [{"id": subnet.subnet_id, "zone": subnet.zone} for subnet in status.subnets],
        "securityGroups": [{"id": security_group} for security_group in status.security_groups],
        "amis": [
            {
                "id": image.image_id,
                "name": image.name,
                "requirements": [
                    {"key": key, "operator": "In", "values": [value]}
                    for key, value in sorted(image.labels.items())
                ],
            }
            for image in status.images
        ],
    }
    known = mapping(raw.get("status"))
    changed: dict[str, Any] = {
        key: value for key, value in wanted.items() if known.get(key) != value
    }
    said = {
        "reason": "NotResolved" if status.problems else "Resolved",
        "message": "; ".join(status.problems) or "machines can be made of it",
    }
    conditions = _with_condition(raw, _READY, said, holds=not status.problems, at=at)
    if conditions is not None:
        changed["conditions"] = conditions
    return _patch(raw, changed) if changed else None


def _with_condition(
    raw: Mapping[str, Any], kind: str, said: Mapping[str, str], *, holds: bool, at: datetime
) -> list[Mapping[str, Any]] | None:
    """Return all conditions with this one among them, None when it stands there already."""
    known = mappings(mapping(raw.get("status")).get("conditions"))
    wanted: dict[str, Any] = {"type": kind, "status": "True" if holds else "False", **said}
    old = next((entry for entry in known if entry.get("type") == kind), {})
    if all(old.get(key) == value for key, value in wanted.items()):
        return None
    since = old.get("lastTransitionTime") if old.get("status") == wanted["status"] else None
    wanted["lastTransitionTime"] = since or at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [*(entry for entry in known if entry.get("type") != kind), wanted]


def _patch(raw: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    return {
        # Lists are replaced as a whole: only if they have not changed since they were read.
        "metadata": {"resourceVersion": mapping(raw.get("metadata")).get("resourceVersion")},
        "status": dict(status),
    }
