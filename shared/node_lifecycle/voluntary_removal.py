"""Voluntary removal of a node: pods and budgets are read first, and a blocked node is kept."""

import contextlib
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from shared.disruption.eviction_blockers import Hold, holds
from shared.events.node_events import event_on
from shared.events.recorder import EventRecorder
from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.node_lifecycle.node_deletion import remove
from shared.node_lifecycle.node_editor import change_node
from shared.ports import NodeChange, NodePorts, Severity

_NAMED: Final = 3


class Removal(StrEnum):
    """The outcome of a voluntary removal."""

    REMOVED = "removed"
    CHANGED = "changed"  # it changed, was deleted or a pod was bound to it: read it again
    BLOCKED = "blocked"  # a pod or a budget blocks it: it is kept until a later step


def look_first(
    ports: NodePorts, node: Node, reason: str, pods: Sequence[Pod] | None = None
) -> tuple[Hold, ...]:
    """Return what blocks a removal, and record it: an Event, and an annotation with the time.

    The annotation is removed when nothing blocks. Nothing else is done to the node.

    Args:
        reason: Of the removal, one word.
        pods: Of the node, if they have just been read.

    Raises:
        ConflictError: If the annotation must be written and the node changed since it was read.
    """
    found = _holds(ports, ports.cluster.pods_on(node.name) if pods is None else pods)
    _note(ports, node, reason, found)
    return found


def remove_by_choice(
    ports: NodePorts,
    node: Node,
    reason: str,
    *,
    still: Callable[[Sequence[Pod]], bool] = lambda _: True,
    despite_holds: bool = False,
) -> Removal:
    """Remove a node unless it is blocked: look, cordon, look again, delete.

    A pod that is bound before the second look keeps the node: the cordon is undone. A crash between
    the two leaves a cordon with Dovetail's reason; the next try continues from there.

    Args:
        reason: One of `shared.node_lifecycle.node_deletion.VOLUNTARY`.
        despite_holds: Whether it begins though pods or budgets hold the node.
        still: Whether the pods that are on it, read after the cordon, still allow the removal.
    """
    try:
        found = () if despite_holds else _holds(ports, ports.cluster.pods_on(node.name))
        node = _note(ports, node, reason, found)
        if found:
            uncordon(ports, node)
            return Removal.BLOCKED
        node = cordon_by_choice(ports, node, reason)
        pods = ports.cluster.pods_on(node.name)
        held = not despite_holds and bool(_holds(ports, pods))
        if held or not still(pods):
            uncordon(ports, node)
            return Removal.BLOCKED if held else Removal.CHANGED
    except (ConflictError, NotFoundError):
        return Removal.CHANGED
    return Removal.REMOVED if remove(ports, node, reason) else Removal.CHANGED


def cordon_by_choice(ports: NodePorts, node: Node, reason: str) -> Node:
    """Cordon a node; the reason on it says that Dovetail made the cordon and may undo it.

    Raises:
        ConflictError: If it changed since it was read.
        NotFoundError: If it is deleted.
    """
    if node.unschedulable:
        return node
    change = NodeChange(unschedulable=True, set_annotations={keys.REMOVAL_REASON: reason})

    def unless_done(node: Node) -> NodeChange | None:
        return None if node.unschedulable or node.deletion_at is not None else change

    return change_node(ports, node, unless_done)


def uncordon(ports: NodePorts, node: Node) -> None:
    """Undo a cordon that Dovetail made; a cordon that users or others made stays."""

    def ours(node: Node) -> NodeChange | None:
        if keys.REMOVAL_REASON not in node.annotations or node.deletion_at is not None:
            return None
        return NodeChange(unschedulable=False, set_annotations={keys.REMOVAL_REASON: None})

    with contextlib.suppress(ConflictError, NotFoundError):
        change_node(ports, node, ours)


def _holds(ports: NodePorts, pods: Sequence[Pod]) -> tuple[Hold, ...]:
    """Return what blocks a removal; budgets are read only when they could protect a pod."""
    now = ports.clock.now()
    if not any(pod.counts_for_emptiness for pod in pods):
        return ()
    return holds(pods, ports.cluster.disruption_budgets(), now)


def _note(ports: NodePorts, node: Node, reason: str, found: Sequence[Hold]) -> Node:
    """Annotate the node with what blocks it and since when, or remove that; return the node."""
    written = node.annotations.get(keys.DISRUPTION_BLOCKED)
    if not found:
        if written is None:
            return node
        change = NodeChange(set_annotations={keys.DISRUPTION_BLOCKED: None})
        return change_node(ports, node, change)
    who = "; ".join(hold.reason for hold in found[:_NAMED]) + (" …" if len(found) > _NAMED else "")
    if written is None:
        now = ports.clock.now()
        text = f"{reason} since {now.isoformat(timespec='seconds')}: {who}"
        change = NodeChange(set_annotations={keys.DISRUPTION_BLOCKED: text})
        node = change_node(ports, node, change)
    text = f"{reason} leaves it alone for now: {who}"
    severity = Severity.NORMAL
    EventRecorder(ports).record([event_on(node, "DisruptionBlocked", text, severity=severity)])
    return node
