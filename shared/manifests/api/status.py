"""Schemas of the status that the functions write; they do not validate it when reading."""

from typing import Any, Final

TEXT: Final = {"type": "string"}
DATE_TIME: Final = {"type": "string", "format": "date-time"}


def object_list(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Return the schema of a list of objects with these fields."""
    needed = {"required": list(required)} if required else {}
    return {"type": "array", "items": {"type": "object", **needed, "properties": properties}}


def status_conditions(**more: Any) -> dict[str, Any]:
    """Return the schema of conditions: a list map keyed by type."""
    found = object_list(
        ("type", "status"),
        type=TEXT,
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        reason=TEXT,
        message=TEXT,
        lastTransitionTime=DATE_TIME,
        **more,
    )
    return {**found, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
