"""Reads raw Kubernetes JSON without trusting its structure.

A field that is null, missing or of another type counts as absent, so that one malformed object
never hides the others.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.model.kubernetes.pods import ControllerRef

Raw = Mapping[str, Any]
# The fields of a pod's spec that have containers.
CONTAINERS: Final = ("containers", "initContainers")


def mapping(value: object) -> Raw:
    """Return the value if it is an object, else an empty one."""
    # dict first: nearly all are dicts, and isinstance of an abstract class is slow.
    return value if isinstance(value, (dict, Mapping)) else {}


def mappings(value: object) -> list[Raw]:
    """Return the objects of a list, in order; anything else counts as an empty list."""
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, (dict, Mapping))]


def texts(value: object) -> tuple[str, ...]:
    """Return the strings of a list, in order; anything else counts as an empty list."""
    return (
        tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()
    )


def text_map(value: object) -> dict[str, str]:
    """Return the string members of an object; null is an empty string.

    Source: https://github.com/kubernetes/kubernetes/pull/129257 (2024-12).
    """
    return {k: v or "" for k, v in mapping(value).items() if isinstance(v, str) or v is None}


def text(value: object) -> str:
    """Return a string, empty for anything else."""
    return value if isinstance(value, str) else ""


def integer(value: object) -> int | None:
    """Return an integer, None for anything else (true and false are no integers)."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def timestamp(value: object) -> datetime | None:
    """Return an RFC 3339 timestamp as aware UTC time, None when it is absent or unreadable."""
    try:
        read = datetime.fromisoformat(text(value))
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def containers_of(spec: Raw) -> list[Raw]:
    """Return the containers of a pod's spec, then its init containers."""
    return [container for field in CONTAINERS for container in mappings(spec.get(field))]


def controller_ref(metadata: Raw) -> ControllerRef | None:
    """Return the controller of an object, None without one."""
    for owner_reference in mappings(metadata.get("ownerReferences")):
        if owner_reference.get("controller") is True:
            return ControllerRef(
                kind=text(owner_reference.get("kind")),
                name=text(owner_reference.get("name")),
                uid=text(owner_reference.get("uid")),
                api_version=text(owner_reference.get("apiVersion")),
            )
    return None


def condition(status: Raw, kind: str) -> Raw:
    """Return the condition of that type in a status, empty when there is none."""
    for entry in mappings(status.get("conditions")):
        if entry.get("type") == kind:
            return entry
    return {}
