"""Expiration: a node older than its Provisioner allows is removed, or replaced if it is in use."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from shared.disruption.emptiness import is_empty
from shared.disruption.expiration import forced_removal_in, time_to_expiration
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner, owner_among
from shared.model.timer_state import TimerState
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.leave.voluntary_removal import RemovalOutcome, remove_voluntarily
from shared.nodes.timers.node_timer import SOON, NodeTimer
from shared.nodes.timers.removal_permits import may_remove
from shared.ports import TimerKind

# While a node waits for its replacement; sweep restarts a timer that is silent for two minutes.
_CHECK_EVERY: Final = timedelta(minutes=1)
_CAUSE: Final = "expiration"


class Expiration(NodeTimer):
    """Removes nodes of one cluster that are too old."""

    kind = TimerKind.EXPIRATION

    def _act(self, node: Node, state: TimerState) -> TimerState:
        """Apply the TTL that the Provisioner has now.

        If the dialect says so, a node is removed by force. Otherwise an empty node is removed as
        soon as its owner's budgets allow that. A node in use is replaced first, which provision
        decides: the first step after the TTL requests an evaluation, later steps wait for the
        replacement.
        """
        owner = owner_among(node, self._acting_owners())
        if owner is None or not node.is_ours:
            return self._finish_and_forget(state, "may not expire")
        left = time_to_expiration(node, owner, self._ports.clock.now())
        if left is None:
            return self._finish_and_forget(state, "lives for ever")
        if owner.dialect.expires_by_force:
            return self._by_force(node, state, left, owner)
        if left > timedelta(0):
            return state.wait_again(left)
        slot = self._slot_of(node)
        empty = is_empty(node, self._ports.cluster.pods_on(node.name), slot)
        if not empty or not may_remove(self._ports, owner, node, None):
            return self._wait_for_replacement(state)

        def still_empty(pods: Sequence[Pod]) -> bool:
            return is_empty(node, pods, slot)

        if (
            remove_voluntarily(self._ports, node, _CAUSE, still_allowed=still_empty)
            != RemovalOutcome.REMOVED
        ):
            return state.wait_again(SOON)
        return self._finish_and_forget(state, "removed")

    def _by_force(
        self, node: Node, state: TimerState, left: timedelta, owner: Provisioner
    ) -> TimerState:
        """Request a replacement ahead of time; remove the node when it expires, blocked or not.

        A node that was launched with a longer lifetime is only replaced.
        """
        if left > owner.replacement_lead_time:
            return state.wait_again(left - owner.replacement_lead_time)
        forced = forced_removal_in(node, owner, self._ports.clock.now())
        if forced is None or forced > max(left, timedelta(0)):
            return self._wait_for_replacement(state)
        if left > timedelta(0):
            if not state.steps:
                self._ports.outbox.evaluate(self._ports.cluster.name)
            return self._count(state, left, ahead=left)
        if not remove_node(self._ports, node, _CAUSE):
            return state.wait_again(SOON)
        return self._finish_and_forget(state, "removed")

    def _wait_for_replacement(self, state: TimerState) -> TimerState:
        if not state.steps:
            self._ports.outbox.evaluate(self._ports.cluster.name)
        return self._check_again(state, _CHECK_EVERY, "due for long")
