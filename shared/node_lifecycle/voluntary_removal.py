"""Removing a node by our own choice: look first, and leave alone what somebody holds."""

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
    """What came of removing a node by choice."""

    REMOVED = "removed"
    CHANGED = "changed"  # it changed, went away or somebody moved in: look again
    BLOCKED = "blocked"  # a pod or a budget holds it: it is left alone until a later look


def look_first(
    ports: NodePorts, node: Node, reason: str, pods: Sequence[Pod] | None = None
) -> tuple[Hold, ...]:
    """Return who holds a node, and tell it: an Event, and an annotation that says since when.

    Both are taken back when nobody does. Nothing else is done to the node.

    Args:
        reason: Why it is to go, one word.
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
) -> Removal:
    """Remove a node unless somebody holds it: look, cordon, look again, delete.

    Whoever moves in before the second look keeps the node: the cordon is taken back. A crash
    between the two leaves a cordon that says it is ours; the next try goes on from there.

    Args:
        reason: One of `shared.node_lifecycle.node_deletion.VOLUNTARY`.
        still: Whether the pods that are on it, read after the cordon, still let it go.
    """
    try:
        found = _holds(ports, ports.cluster.pods_on(node.name))
        node = _note(ports, node, reason, found)
        if found:
            uncordon(ports, node)
            return Removal.BLOCKED
        node = cordon_by_choice(ports, node, reason)
        pods = ports.cluster.pods_on(node.name)
        held = bool(_holds(ports, pods))
        if held or not still(pods):
            uncordon(ports, node)
            return Removal.BLOCKED if held else Removal.CHANGED
    except (ConflictError, NotFoundError):
        return Removal.CHANGED
    return Removal.REMOVED if remove(ports, node, reason) else Removal.CHANGED


def cordon_by_choice(ports: NodePorts, node: Node, reason: str) -> Node:
    """Cordon a node; the reason on it says that the cordon is ours to take back.

    Raises:
        ConflictError: If it changed since it was read.
        NotFoundError: If it is gone.
    """
    if node.unschedulable:
        return node
    change = NodeChange(unschedulable=True, set_annotations={keys.REMOVAL_REASON: reason})

    def unless_done(node: Node) -> NodeChange | None:
        return None if node.unschedulable or node.deletion_at is not None else change

    return change_node(ports, node, unless_done)


def uncordon(ports: NodePorts, node: Node) -> None:
    """Take back a cordon of ours; one that people or others made stays."""

    def ours(node: Node) -> NodeChange | None:
        if keys.REMOVAL_REASON not in node.annotations or node.deletion_at is not None:
            return None
        return NodeChange(unschedulable=False, set_annotations={keys.REMOVAL_REASON: None})

    with contextlib.suppress(ConflictError, NotFoundError):
        change_node(ports, node, ours)


def _holds(ports: NodePorts, pods: Sequence[Pod]) -> tuple[Hold, ...]:
    """Return who holds a node; budgets are read only when there is a pod they could protect."""
    now = ports.clock.now()
    if not any(pod.counts_for_emptiness for pod in pods):
        return ()
    return holds(pods, ports.cluster.disruption_budgets(), now)


def _note(ports: NodePorts, node: Node, reason: str, found: Sequence[Hold]) -> Node:
    """Write on the node who holds it and since when, or take that back; return it as it is then."""
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
