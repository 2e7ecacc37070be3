"""Emptiness: a node that stays empty for its ttl is removed.

A report that a node is empty, or no longer is, only wakes the function: node and pods are read. A
stamp is written when the node is seen empty without a stamp, never moved, and removed when a pod
is seen on it: by the timer, by the forwarder's next report and by sweep each minute.
"""

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Final

from shared.brakes.runaway import note_failure, useless
from shared.brakes.trials import launched_for, recent_trials
from shared.disruption.emptiness import (
    EmptinessDecision,
    EmptinessStep,
    decide_emptiness,
    empty_since,
    is_empty,
)
from shared.disruption.eviction_blockers import first_hold
from shared.events.node_events import empty, event_on
from shared.events.recorder import EventRecorder
from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason
from shared.model.provisioner import Provisioner, owner_among
from shared.model.timer_state import TimerState
from shared.node_lifecycle.node_deletion import remove
from shared.node_lifecycle.node_editor import change_node
from shared.node_lifecycle.node_timer import SOON, NodeTimer
from shared.node_lifecycle.stale_marks import unmarked
from shared.node_lifecycle.voluntary_removal import cordon_by_choice
from shared.ports import NodeChange, Severity, TimerKind
from shared.timers.removal_permits import may_remove
from shared.timers.timers import start_emptiness

_REASON: Final = "emptiness"
_HELD: Final = "held by a disruption budget"
# A node that a budget holds is tried again so often; after that sweep does it each minute.
_TURN: Final = timedelta(seconds=10)
_TURNS: Final = 30


class Emptiness(NodeTimer):
    """Removes empty nodes of one cluster; each step reads cluster and EC2 again."""

    kind = TimerKind.EMPTINESS

    def begin(self, node_name: str) -> str:
        """Start the timer of an empty node, or remove its stamp; return what was done.

        A node whose time is over is removed at once: its timer did not wake, or died.
        """
        node = self._ports.cluster.node(node_name)
        if node is None:
            return "gone"
        try:
            return self._begin(node)
        except (ConflictError, NotFoundError):
            # Deleted, or other controllers write to it: the forwarder reports it again.
            return "changed meanwhile"

    def _begin(self, node: Node) -> str:
        now = self._ports.clock.now()
        node = unmarked(self._ports, node, now)
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
            if result != _HELD:
                return result or "changed meanwhile"
            wait = _TURN
        start_emptiness(self._ports, node, empty_since(node) or now, wait, now)
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
                if result == _HELD and (state.steps or 0) < _TURNS:
                    self._heartbeat(node.uid)
                    return replace(state, steps=(state.steps or 0) + 1).wait_again(_TURN)
                return self._finish_and_forget(state, result) if result else state.wait_again(SOON)
            case _:
                # Occupied, or stamped again by another timer: this timer ends.
                self._forget(node)
                return self._finish_and_forget(state, "not empty")

    def _remove(self, node: Node, owner: Provisioner) -> str:
        """Cordon, look again, and remove, unless a pod was bound to the node meanwhile.

        Returns:
            The result; empty when the node changed meanwhile: look again.
        """
        if not may_remove(self._ports, owner, node, DisruptionReason.EMPTY):
            text = "its disruption budgets allow no more empty nodes to be removed now"
            told = event_on(owner, "DisruptionBlocked", text, severity=Severity.NORMAL)
            EventRecorder(self._ports).record([told])
            return _HELD
        cordoned = cordon_by_choice(self._ports, node, _REASON)
        if not self._is_empty(cordoned):
            self._forget(cordoned)
            return "not empty"
        self._note_useless(node, owner)
        return "removed" if remove(self._ports, cordoned, _REASON) else ""

    def _note_useless(self, node: Node, owner: Provisioner) -> None:
        """Record a failed trial where a new node is removed while pods wait that cannot use it."""
        cluster, ledger, now = self._ports.cluster, self._ports.ledger, self._ports.clock.now()
        waited = launched_for(ledger, cluster.name, node.instance_id)
        there, pending = cluster.pods_on(node.name), cluster.pending_pods()
        trial = useless(node, owner, there, pending, waited, now)
        if trial is not None:
            note_failure(ledger, cluster.name, trial, recent_trials(ledger, cluster.name, now))

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
        """Return what to do; a node whose pods of DaemonSets must stay is left, as in the look.

        Budgets are only read for a node that is empty otherwise.
        """
        ttl = owner.ttl_after_empty if owner is not None else None
        slot = self._slot_of(node)
        pods, now = self._ports.cluster.pods_on(node.name), self._ports.clock.now()
        decision = decide_emptiness(node, pods, slot, ttl, now)
        if decision.step == EmptinessStep.FORGET or not (owner and owner.dialect.each_pod_holds):
            return decision
        held = first_hold(pods, self._ports.cluster.disruption_budgets(), now)
        return EmptinessDecision(step=EmptinessStep.FORGET) if held else decision

    def _is_empty(self, node: Node) -> bool:
        # The slot before the pods: a promise that is kept in between is a pod that is read later.
        slot = self._slot_of(node)
        return is_empty(node, self._ports.cluster.pods_on(node.name), slot)

    def _slot_of(self, node: Node) -> Slot | None:
        return self._ports.ledger.slot_with(self._ports.cluster.name, node.instance_id)

    def _write(self, node: Node, change: NodeChange) -> Node:
        """Change a Node unless it is being deleted."""
        return change_node(self._ports, node, lambda read: None if read.deletion_at else change)
