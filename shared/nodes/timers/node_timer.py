"""One step of a timer, common to all timers; each kind decides what to do with its node."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.model.timer_state import TimerState, decode_state
from shared.model.values import replace
from shared.nodes.brakes.removals import removals_blocked
from shared.nodes.timers.heartbeats import drop_heartbeat, save_heartbeat
from shared.nodes.timers.timers import continue_as_new
from shared.ports import NodePorts, TimerKind

SOON: Final = timedelta(seconds=1)
# After another controller changed the node that is to be annotated with the new execution.
_CHANGED: Final = timedelta(seconds=2)
# An execution may have 25,000 events; 7,000 attempts of a step that fails make 21,000 of them. A
# step makes nine, so after this many steps another execution continues.
# Source: https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html (2026-11-27).
MAX_STEPS: Final = 400
CONTINUED: Final = "continued in another execution"


class BaseTimer(ABC):
    """Takes the steps of one timer kind in one cluster; each step reads the cluster and EC2 again.

    Attributes:
        kind: The kind of the timer, as in the ledger.
    """

    kind: ClassVar[TimerKind]

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports

    def step(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state after the next step of a timer.

        Raises:
            InvalidMessageError: If the state lacks a field.
            RetryableError: If the cluster or EC2 could not be read or changed now.
        """
        return self._step(decode_state(state)).encode()

    @abstractmethod
    def _step(self, state: TimerState) -> TimerState:
        """Do what is due now; return a state that waits or is done."""

    def _heartbeat(self, uid: str, ahead: timedelta = timedelta(0)) -> None:
        """Record that the timer of a node runs, or when it takes its next step."""
        now = self._ports.clock.now()
        save_heartbeat(self._ports.ledger, self._ports.cluster.name, uid, self.kind, now + ahead)

    def _continue_as_new(
        self, state: TimerState, new: TimerState, node: Node | None = None
    ) -> TimerState:
        """End this execution and continue with a new state in another, see `continue_as_new`."""
        if not continue_as_new(self._ports, self.kind, new, node):
            return state.wait_again(_CHANGED)
        return state.finish(CONTINUED)

    def _finish_and_forget(self, state: TimerState, result: str) -> TimerState:
        """Remove the timer's heartbeat and return the state that ends it."""
        drop_heartbeat(self._ports.ledger, self._ports.cluster.name, state.uid, self.kind)
        return state.finish(result)

    def _acting_owners(self) -> dict[str, Provisioner]:
        """Return the Provisioners, by name, whose removals nothing blocks."""
        if removals_blocked(self._ports):
            return {}
        provisioners, _ = self._ports.cluster.provisioners()
        return {owner.name: owner for owner in provisioners if not (owner.paused or owner.shadow)}


class NodeTimer(BaseTimer):
    """A timer that ends with its node; of its steps only those are counted that wait again."""

    def _step(self, state: TimerState) -> TimerState:
        node = self._ports.cluster.node(state.node)
        if node is None or node.uid != state.uid:
            return self._finish_and_forget(state, "gone")
        if node.deletion_at is not None:
            return self._act_on_deleted(node, state)
        return self._act(node, state)

    def _act_on_deleted(self, _: Node, state: TimerState) -> TimerState:
        """Do what is due for a node that is being deleted; return a state that waits or is done."""
        return self._finish_and_forget(state, "gone")

    @abstractmethod
    def _act(self, node: Node, state: TimerState) -> TimerState:
        """Do what is due for a node that stays; return a state that waits or is done."""

    def _count(
        self, state: TimerState, wait: timedelta, ahead: timedelta = timedelta(0)
    ) -> TimerState:
        """Record that the timer runs and count the step; return a state that waits."""
        self._heartbeat(state.uid, ahead)
        return replace(state, steps=(state.steps or 0) + 1).wait_again(wait)

    def _check_again(self, state: TimerState, wait: timedelta, long: str) -> TimerState:
        """Return a state that waits, or ends with the result `long` after many steps.

        The heartbeat stays: sweep finds it silent and starts another timer.
        """
        after = self._count(state, wait)
        return state.finish(long) if (after.steps or 0) >= MAX_STEPS else after

    def _slot_of(self, node: Node) -> Slot | None:
        return self._ports.ledger.slot_with(self._ports.cluster.name, node.instance_id)
