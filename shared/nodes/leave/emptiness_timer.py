"""Emptiness: a node that stays empty for its TTL is removed.

A report that a node is empty, or no longer is, only wakes the function, which reads the node and
its pods. The stamp is written when the node is found empty without one, never changed, and removed
when a pod is found on it: by the timer, at the forwarder's next report and by sweep each minute.
"""

import contextlib
from datetime import timedelta
from typing import Final

from shared.disruption.emptiness import (
    EmptinessDecision,
    EmptinessStep,
    decide_emptiness,
    empty_since,
    is_empty,
)
from shared.disruption.eviction_blockers import first_blocking_reason
from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason
from shared.model.provisioner import Provisioner, owner_among
from shared.model.timer_state import TimerState
from shared.nodes.brakes.runaway import save_useless_trial
from shared.nodes.events.node_events import empty, event_on
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.leave.stale_marks import without_stale_marks
from shared.nodes.leave.voluntary_removal import cordon_voluntarily
from shared.nodes.node_editor import change_node
from shared.nodes.timers.node_timer import SOON, NodeTimer
from shared.nodes.timers.removal_permits import may_remove
from shared.nodes.timers.timers import start
from shared.ports import NodeChange, Severity, TimerKind

_REASON: Final = "emptiness"
_BLOCKED_BY_BUDGET: Final = "held by a disruption budget"
# How often a node that a budget blocks is tried again; after that, sweep tries each minute.
_RETRY_EVERY: Final = timedelta(seconds=10)
_MOST_RETRIES: Final = 30


class Emptiness(NodeTimer):
    """Removes empty nodes of one cluster; each step reads cluster and EC2 again."""

    kind = TimerKind.EMPTINESS

    def begin(self, node_name: str) -> str:
        """Start the timer of an empty node, or remove its stamp; return what was done.

        A node whose TTL is over is removed at once: its timer did not run, or ended by accident.
        """
        node = self._ports.cluster.node(node_name)
        if node is None:
            return "gone"
        try:
            return self._begin(node)
        except (ConflictError, NotFoundError):
            # It was deleted, or other controllers write to it: the forwarder reports it again.
            return "changed meanwhile"

    def _begin(self, node: Node) -> str:
        now = self._ports.clock.now()
        node = without_stale_marks(self._ports, node, now)
        owner = owner_among(node, self._acting_owners())
        decision = self._decide(node, owner)
        if owner is None or decision.step == EmptinessStep.FORGET:
            if keys.EMPTINESS_TIMESTAMP in node.annotations and not self._is_empty(node):
                self._forget(node)
            return "not empty"
        if decision.step == EmptinessStep.STAMP:
            stamp = now.replace(microsecond=0).isoformat()
            change = NodeChange(set_annotations={keys.EMPTINESS_TIMESTAMP: stamp})
            node = self._write(node, change)
            EventRecorder(self._ports).record_each(empty(node, decision.wait))
        wait = decision.wait
        if decision.step == EmptinessStep.REMOVE:
            result = self._remove(node, owner)
            if result != _BLOCKED_BY_BUDGET:
                return result or "changed meanwhile"
            wait = _RETRY_EVERY
        start(self._ports, self.kind, node, empty_since(node) or now, wait)
        return "timer started"

    def _act(self, node: Node, state: TimerState) -> TimerState:
        stamp = node.annotations.get(keys.EMPTINESS_TIMESTAMP)
        if stamp is not None and stamp != state.text("since"):
            return state.finish("empty anew: another timer runs")
        try:
            return self._decide_and_act(node, state)
        except (ConflictError, NotFoundError):
            # The node was deleted between two calls, or other controllers write to it.
            return state.wait_again(SOON)

    def _decide_and_act(self, node: Node, state: TimerState) -> TimerState:
        owner = owner_among(node, self._acting_owners())
        decision = self._decide(node, owner)
        match decision.step:
            case EmptinessStep.WAIT:
                return state.wait_again(decision.wait)
            case EmptinessStep.REMOVE if owner is not None:
                result = self._remove(node, owner)
                if result == _BLOCKED_BY_BUDGET and (state.steps or 0) < _MOST_RETRIES:
                    return self._count(state, _RETRY_EVERY)
                return self._finish_and_forget(state, result) if result else state.wait_again(SOON)
            case _:
                # Occupied, or stamped again by another timer: this timer ends.
                self._forget(node)
                return self._finish_and_forget(state, "not empty")

    def _remove(self, node: Node, owner: Provisioner) -> str:
        """Cordon the node, check it again and remove it, unless a pod was bound to it meanwhile.

        Returns:
            The result; empty if the node changed meanwhile: try again.
        """
        if not may_remove(self._ports, owner, node, DisruptionReason.EMPTY):
            text = "its disruption budgets allow no more empty nodes to be removed now"
            blocked_event = event_on(owner, "DisruptionBlocked", text, severity=Severity.NORMAL)
            EventRecorder(self._ports).record([blocked_event])
            return _BLOCKED_BY_BUDGET
        cordoned = cordon_voluntarily(self._ports, node, _REASON)
        if not self._is_empty(cordoned):
            self._forget(cordoned)
            return "not empty"
        save_useless_trial(self._ports, node, owner)
        return "removed" if remove_node(self._ports, cordoned, _REASON) else ""

    def _forget(self, node: Node) -> None:
        """Remove the stamp, and the cordon if Dovetail made it."""
        cordoned = node.annotations.get(keys.REMOVAL_REASON) == _REASON
        if not node.is_ours or not (cordoned or keys.EMPTINESS_TIMESTAMP in node.annotations):
            return
        written = (keys.EMPTINESS_TIMESTAMP, *([keys.REMOVAL_REASON] if cordoned else ()))
        change = NodeChange(
            set_annotations=dict.fromkeys(written), unschedulable=False if cordoned else None
        )
        with contextlib.suppress(NotFoundError):
            self._write(node, change)

    def _decide(self, node: Node, owner: Provisioner | None) -> EmptinessDecision:
        """Return what to do; a node whose DaemonSet pods must stay is kept, as in the evaluation.

        PodDisruptionBudgets are read only for a node that is empty otherwise.
        """
        ttl = owner.ttl_after_empty if owner is not None else None
        slot = self._slot_of(node)
        pods, now = self._ports.cluster.pods_on(node.name), self._ports.clock.now()
        decision = decide_emptiness(node, pods, slot, ttl, now)
        if decision.step == EmptinessStep.FORGET or not (owner and owner.dialect.daemon_pods_block):
            return decision
        blocked = first_blocking_reason(pods, self._ports.cluster.disruption_budgets(), now)
        return EmptinessDecision(step=EmptinessStep.FORGET) if blocked else decision

    def _is_empty(self, node: Node) -> bool:
        # The slot before the pods: a nominated pod that is bound in between is among the pods read
        # later.
        slot = self._slot_of(node)
        return is_empty(node, self._ports.cluster.pods_on(node.name), slot)

    def _write(self, node: Node, change: NodeChange) -> Node:
        """Change a Node unless it is being deleted."""
        return change_node(self._ports, node, lambda read: None if read.deletion_at else change)
