"""Emptiness: a node that stays empty for its ttl is removed."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from shared.disruption.emptiness import (
    EmptinessDecision,
    EmptinessStep,
    decide_emptiness,
    empty_since,
    is_empty,
)
from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.launch import Slot
from shared.model.nodes import Node
from shared.ports import ClusterPorts, NodeChange, TimerKind
from shared.services.removing import remove
from shared.services.timers import again, done, start_emptiness, text_of

_SOON = timedelta(seconds=1)
_REASON = "emptiness"


class Emptying:
    """Watches over empty nodes of one cluster; every step reads the world anew."""

    def __init__(self, ports: ClusterPorts) -> None:
        """Prepare for one cluster."""
        self._ports = ports

    def begin(self, node_name: str, at: datetime | None) -> str:
        """Start the timer of a node that was reported empty, if it is; return what was done.

        Args:
            at: When its last pod left; an older stamp is of an earlier emptiness and replaced.
                None when that is not known: a stamp that is there stands.
        """
        node = self._ports.cluster.node(node_name)
        if node is None:
            return "gone"
        decision = self._decide(node)
        if decision.step == EmptinessStep.FORGET:
            return "not empty"
        now = self._ports.clock.now()
        written = empty_since(node)
        outdated = written is not None and at is not None and written < at.replace(microsecond=0)
        if decision.step == EmptinessStep.STAMP or outdated:
            stamp = now.replace(microsecond=0)
            change = NodeChange(set_annotations={keys.EMPTINESS_TIMESTAMP: stamp.isoformat()})
            node = self._ports.cluster.change_node(node, change)
            decision = self._decide(node)
        since = empty_since(node) or now
        start_emptiness(self._ports, node, since, decision.wait, now)
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
        except NotFoundError:
            # It went away between two calls: the next look says so.
            return again(state, _SOON)

    def _act(self, node: Node, state: Mapping[str, Any]) -> dict[str, Any]:
        decision = self._decide(node)
        match decision.step:
            case EmptinessStep.WAIT:
                return again(state, decision.wait)
            case EmptinessStep.REMOVE:
                return self._remove(node, state)
            case _:
                # Occupied, or stamped anew by another timer: this one is over.
                self._forget(node)
                return self._end(state, "not empty")

    def _remove(self, node: Node, state: Mapping[str, Any]) -> dict[str, Any]:
        """Cordon, look again, and remove; whoever moved in meanwhile keeps the node."""
        if not node.unschedulable:
            # The reason says that the cordon is ours to take back.
            change = NodeChange(unschedulable=True, set_annotations={keys.REMOVAL_REASON: _REASON})
            node = self._ports.cluster.change_node(node, change)
        if not is_empty(node, self._ports.cluster.pods_on(node.name), self._slot_of(node)):
            self._forget(node)
            return self._end(state, "not empty")
        if not remove(self._ports, node, _REASON):
            return again(state, _SOON)
        return self._end(state, "removed")

    def _forget(self, node: Node) -> None:
        """Take the stamp back, and the cordon if it is ours and not somebody else's."""
        cordoned = node.annotations.get(keys.REMOVAL_REASON) == _REASON
        if not node.is_ours or not (cordoned or keys.EMPTINESS_TIMESTAMP in node.annotations):
            return
        written = (keys.EMPTINESS_TIMESTAMP, *([keys.REMOVAL_REASON] if cordoned else ()))
        change = NodeChange(
            set_annotations=dict.fromkeys(written), unschedulable=False if cordoned else None
        )
        try:
            self._ports.cluster.change_node(node, change)
        except ConflictError:
            fresh = self._ports.cluster.node(node.name)
            if fresh is not None and fresh.uid == node.uid and fresh.deletion_at is None:
                self._ports.cluster.change_node(fresh, change)

    def _decide(self, node: Node) -> EmptinessDecision:
        provisioners, _ = self._ports.cluster.provisioners()
        owner = next((p for p in provisioners if p.name == node.provisioner), None)
        held = self._ports.brakes.holds or owner is None or owner.paused or owner.shadow
        ttl = owner.ttl_after_empty if owner is not None and not held else None
        pods = self._ports.cluster.pods_on(node.name)
        return decide_emptiness(node, pods, self._slot_of(node), ttl, self._ports.clock.now())

    def _slot_of(self, node: Node) -> Slot | None:
        slots = self._ports.ledger.slots(self._ports.cluster.name)
        return next((one for one in slots if one.instance_id == node.instance_id), None)

    def _end(self, state: Mapping[str, Any], result: str) -> dict[str, Any]:
        self._ports.ledger.drop_timer(
            self._ports.cluster.name, text_of(state, "uid"), TimerKind.EMPTINESS
        )
        return done(state, result)
