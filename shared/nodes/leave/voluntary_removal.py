"""Voluntary removal of a node: pods and budgets are checked first, and a blocked node is kept."""

import contextlib
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from shared.disruption.eviction_blockers import EvictionBlocker, eviction_blockers
from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.nodes.events.node_events import event_on
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.node_editor import change_node
from shared.ports import NodeChange, NodePorts, Severity

_NAMED: Final = 3


class RemovalOutcome(StrEnum):
    """The outcome of a voluntary removal."""

    REMOVED = "removed"
    CHANGED = "changed"  # the node changed, was deleted or got a pod: read it again
    BLOCKED = "blocked"  # a pod or a budget blocks the removal: the node is kept until a later step


def record_blockers(
    ports: NodePorts, node: Node, reason: str, pods: Sequence[Pod] | None = None
) -> tuple[EvictionBlocker, ...]:
    """Return what blocks a removal; record it in an Event and in an annotation with the time.

    The annotation is removed when nothing blocks. Nothing else is done to the node.

    Args:
        reason: The reason of the removal, one word.
        pods: The pods of the node, if they have just been read.

    Raises:
        ConflictError: If the annotation must be written and the node changed since it was read.
    """
    blockers = _blockers(ports, ports.cluster.pods_on(node.name) if pods is None else pods)
    _annotate_blockers(ports, node, reason, blockers)
    return blockers


def remove_voluntarily(
    ports: NodePorts,
    node: Node,
    reason: str,
    *,
    still_allowed: Callable[[Sequence[Pod]], bool] = lambda _: True,
    despite_blockers: bool = False,
) -> RemovalOutcome:
    """Remove a node unless it is blocked: check, cordon, check again, delete.

    A pod that is bound before the second check may keep the node: then the cordon is undone. A
    crash between the two leaves a cordon with Dovetail's reason; the next try continues from there.

    Args:
        reason: One of `shared.nodes.leave.node_deletion.VOLUNTARY_REASONS`.
        despite_blockers: Whether to remove the node although pods or budgets block that.
        still_allowed: Returns whether the pods on the node, read after the cordon, still allow the
            removal.
    """
    try:
        blockers = () if despite_blockers else _blockers(ports, ports.cluster.pods_on(node.name))
        node = _annotate_blockers(ports, node, reason, blockers)
        if blockers:
            uncordon(ports, node)
            return RemovalOutcome.BLOCKED
        node = cordon_voluntarily(ports, node, reason)
        pods = ports.cluster.pods_on(node.name)
        blocked = not despite_blockers and bool(_blockers(ports, pods))
        if blocked or not still_allowed(pods):
            uncordon(ports, node)
            return RemovalOutcome.BLOCKED if blocked else RemovalOutcome.CHANGED
    except (ConflictError, NotFoundError):
        return RemovalOutcome.CHANGED
    return RemovalOutcome.REMOVED if remove_node(ports, node, reason) else RemovalOutcome.CHANGED


def cordon_voluntarily(ports: NodePorts, node: Node, reason: str) -> Node:
    """Cordon a node; the reason on it shows that Dovetail made the cordon and may undo it.

    Raises:
        ConflictError: If it changed since it was read.
        NotFoundError: If it was deleted.
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


def _blockers(ports: NodePorts, pods: Sequence[Pod]) -> tuple[EvictionBlocker, ...]:
    """Return what blocks a removal; budgets are read only if they could protect a pod."""
    now = ports.clock.now()
    if not any(pod.counts_for_emptiness for pod in pods):
        return ()
    return eviction_blockers(pods, ports.cluster.disruption_budgets(), now)


def _annotate_blockers(
    ports: NodePorts, node: Node, reason: str, found: Sequence[EvictionBlocker]
) -> Node:
    """Annotate the node with what blocks it and since when, or remove the annotation; return it."""
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
