"""Schemas of what the functions write into a status, which they do not read strictly."""

from typing import Any, Final

TEXT: Final = {"type": "string"}
MOMENT: Final = {"type": "string", "format": "date-time"}


def objects(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Return the schema of a list of objects with these fields."""
    needed = {"required": list(required)} if required else {}
    return {"type": "array", "items": {"type": "object", **needed, "properties": properties}}


def conditions(**more: Any) -> dict[str, Any]:
    """Return the schema of conditions; their writers keep them side by side, each of its type."""
    found = objects(
        ("type", "status"),
        type=TEXT,
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        reason=TEXT,
        message=TEXT,
        lastTransitionTime=MOMENT,
        **more,
    )
    return {**found, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
