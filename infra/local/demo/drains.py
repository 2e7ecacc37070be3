"""The expectation that a drain is blocked, with its reason reported."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from infra.local.demo.timeline import NodeTrack

_BLOCKED: Final = "dovetail.dev/drain-blocked"
_EVENT: Final = "DrainBlocked"


def why_not_blocked(
    nodes: Iterable[NodeTrack], events: frozenset[tuple[str, str]], argument: Mapping[str, Any]
) -> str:
    """Return why no drain is reported as blocked by `argument["by"]`, empty when one is.

    Args:
        nodes: Dovetail's nodes.
        events: (reason, name of the object) of each Kubernetes Event.
    """
    draining = [
        node_track
        for node_track in nodes
        if node_track.deleting is not None and node_track.gone is None
    ]
    if not draining:
        return "no Dovetail node is being drained"
    for node in draining:
        said = node.annotations.get(_BLOCKED, "")
        if "since 2" not in said or argument["by"] not in said:
            return f"{node.name} reports {said or 'nothing'} as the reason of its blocked drain"
        if (_EVENT, node.name) not in events:
            return f"there is no Event {_EVENT} about {node.name}"
    return ""
