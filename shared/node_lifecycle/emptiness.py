"""Emptiness: a node that stays empty for its ttl is removed.

A report that a node is empty, or no longer is, says nothing that is believed: node and pods are
read. A stamp is written when the node is seen empty without a stamp, never moved, and taken back
when a pod is seen on it: by the timer, by the forwarder's next report and by sweep each minute.
"""

import contextlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from shared.disruption.emptiness import (
    EmptinessDecision,
    EmptinessStep,
    decide_emptiness,
    empty_since,
    is_empty,
)
from shared.events.node_events import empty
from shared.events.recorder import EventRecorder
from shared.model import labels as keys
from shared.model.ec2.launches import Slot, slot_of
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.node_lifecycle.node_deletion import remove
from shared.node_lifecycle.node_editor import change_node
from shared.node_lifecycle.stale_marks import unmarked
from shared.ports import NodeChange, NodePorts, TimerKind
from shared.timers.timers import again, done, ended, start_emptiness, text_of

_SOON: Final = timedelta(seconds=1)
_REASON: Final = "emptiness"


class Emptiness:
    """Watches over empty nodes of one cluster; every step reads the world anew."""

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports

    def begin(self, node_name: str) -> str:
        """Start the timer of a node that is empty, or take its stamp back; return what was done.

        One whose time is over already is removed at once: its timer did not wake, or died.
        """
        node = self._ports.cluster.node(node_name)
        if node is None:
            return "gone"
        try:
            return self._begin(node)
        except (ConflictError, NotFoundError):
            # Gone, or others write to it all the time: the forwarder says so again.
            return "changed meanwhile"

    def _begin(self, node: Node) -> str:
        now = self._ports.clock.now()
        node = unmarked(self._ports, node, now)
        decision = self._decide(node)
        if decision.step == EmptinessStep.FORGET:
            if keys.EMPTINESS_TIMESTAMP in node.annotations and not self._is_empty(node):
                self._forget(node)
            return "not empty"
        if decision.step == EmptinessStep.STAMP:
            stamp = now.replace(microsecond=0).isoformat()
            change = NodeChange(set_annotations={keys.EMPTINESS_TIMESTAMP: stamp})
            node = change_node(self._ports, node, _unless_deleted(change))
            decision = self._decide(node)
            if decision.step == EmptinessStep.WAIT:
                ttl = decision.wait + (now - (empty_since(node) or now))
                EventRecorder(self._ports).record_each(empty(node, ttl))
        if decision.step == EmptinessStep.REMOVE:
            return self._remove(node) or "changed meanwhile"
        start_emptiness(self._ports, node, empty_since(node) or now, decision.wait, now)
        return "timer started"

    def step(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Take the timer's next step.

        Raises:
            InvalidMessageError: If the state lacks a field.
            RetryableError: If the world could not be read or changed now.
        """
        node = self._ports.cluster.node(text_of(state, "node"))
        if node is None or node.uid != text_of(state, "uid") or node.deletion_at is not None:
            return self._end(state, "gone")
        stamp = node.annotations.get(keys.EMPTINESS_TIMESTAMP)
        if stamp is not None and stamp != text_of(state, "since"):
            return done(state, "empty anew: another timer runs")
        try:
            return self._act(node, state)
        except (ConflictError, NotFoundError):
            # It went away between two calls, or others write to it all the time.
            return again(state, _SOON)

    def _act(self, node: Node, state: Mapping[str, Any]) -> dict[str, Any]:
        decision = self._decide(node)
        match decision.step:
            case EmptinessStep.WAIT:
                return again(state, decision.wait)
            case EmptinessStep.REMOVE:
                result = self._remove(node)
                return self._end(state, result) if result else again(state, _SOON)
            case _:
                # Occupied, or stamped anew by another timer: this one is over.
                self._forget(node)
                return self._end(state, "not empty")

    def _remove(self, node: Node) -> str:
        """Cordon, look again, and remove; whoever moved in meanwhile keeps the node.

        Returns:
            What became of it; empty when it changed meanwhile: look again.
        """
        if not node.unschedulable:
            # The reason says that the cordon is ours to take back.
            change = NodeChange(unschedulable=True, set_annotations={keys.REMOVAL_REASON: _REASON})
            node = change_node(self._ports, node, _unless_deleted(change))
        if not self._is_empty(node):
            self._forget(node)
            return "not empty"
        return "removed" if remove(self._ports, node, _REASON) else ""

    def _forget(self, node: Node) -> None:
        """Take the stamp back, and the cordon if it is ours and not somebody else's."""
        cordoned = node.annotations.get(keys.REMOVAL_REASON) == _REASON
        if not node.is_ours or not (cordoned or keys.EMPTINESS_TIMESTAMP in node.annotations):
            return
        written = (keys.EMPTINESS_TIMESTAMP, *([keys.REMOVAL_REASON] if cordoned else ()))
        change = NodeChange(
            set_annotations=dict.fromkeys(written), unschedulable=False if cordoned else None
        )
        with contextlib.suppress(NotFoundError):
            change_node(self._ports, node, _unless_deleted(change))

    def _decide(self, node: Node) -> EmptinessDecision:
        provisioners, _ = self._ports.cluster.provisioners()
        owner = next((p for p in provisioners if p.name == node.provisioner), None)
        held = self._ports.brakes.holds or owner is None or owner.paused or owner.shadow
        ttl = owner.ttl_after_empty if owner is not None and not held else None
        pods = self._ports.cluster.pods_on(node.name)
        return decide_emptiness(node, pods, self._slot_of(node), ttl, self._ports.clock.now())

    def _is_empty(self, node: Node) -> bool:
        return is_empty(node, self._ports.cluster.pods_on(node.name), self._slot_of(node))

    def _slot_of(self, node: Node) -> Slot | None:
        slots = self._ports.ledger.slots(self._ports.cluster.name)
        return slot_of(slots, node.instance_id)

    def _end(self, state: Mapping[str, Any], result: str) -> dict[str, Any]:
        return ended(self._ports, state, TimerKind.EMPTINESS, result)


def _unless_deleted(change: NodeChange) -> Callable[[Node], NodeChange | None]:
    """Return a change that is not made to a Node that is being deleted."""
    return lambda node: change if node.deletion_at is None else None
