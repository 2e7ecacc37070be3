"""Expiration: a node older than its Provisioner allows is removed, or replaced when it is used."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from shared.disruption.emptiness import is_empty
from shared.disruption.expiration import expires_in
from shared.model.ec2.launches import Slot, slot_of
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.node_lifecycle.voluntary_removal import Removal, remove_by_choice
from shared.ports import NodePorts, TimerKind
from shared.timers.timers import again, done, ended, text_of

_SOON: Final = timedelta(seconds=1)
# While it waits for its turn; sweep calls a timer lost that is silent for two minutes.
_TURN: Final = timedelta(minutes=1)
# An execution may have 25,000 events and a step makes about ten: sweep starts the next one.
_MAX_STEPS: Final = 1500
_CAUSE: Final = "expiration"


class Expiration:
    """Watches over the age of nodes of one cluster."""

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports

    def step(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Take the timer's next step: the ttl counts as it stands in the Provisioner now.

        An empty node goes at once. One that is used is replaced first, which provision decides:
        the first step after its time asks for that, later ones wait for it.

        Raises:
            InvalidMessageError: If the state lacks a field.
            RetryableError: If the world could not be read or changed now.
        """
        node = self._ports.cluster.node(text_of(state, "node"))
        if node is None or node.uid != text_of(state, "uid") or node.deletion_at is not None:
            return self._end(state, "gone")
        provisioners, _ = self._ports.cluster.provisioners()
        owner = next(
            (provisioner for provisioner in provisioners if provisioner.name == node.provisioner),
            None,
        )
        if self._ports.brakes.holds or owner is None or not node.is_ours:
            return self._end(state, "may not expire")
        if owner.paused or owner.shadow:
            return self._end(state, "may not expire")
        left = expires_in(node, owner.ttl_until_expired, self._ports.clock.now())
        if left is None:
            return self._end(state, "lives for ever")
        if left > timedelta(0):
            return again(state, left)
        slot = self._slot_of(node)
        if not is_empty(node, self._ports.cluster.pods_on(node.name), slot):
            return self._wait_for_replacement(node, state)

        def still_empty(pods: Sequence[Pod]) -> bool:
            return is_empty(node, pods, slot)

        if remove_by_choice(self._ports, node, _CAUSE, still=still_empty) != Removal.REMOVED:
            return again(state, _SOON)
        return self._end(state, "removed")

    def _wait_for_replacement(self, node: Node, state: Mapping[str, Any]) -> dict[str, Any]:
        name, steps = self._ports.cluster.name, int(state.get("steps", 0)) + 1
        if steps == 1:
            self._ports.outbox.look(name)
        self._ports.ledger.note_timer(name, node.uid, TimerKind.EXPIRATION, self._ports.clock.now())
        if steps >= _MAX_STEPS:
            # Its row stays: sweep finds it silent and starts another.
            return done(state, "due for long")
        return again({**state, "steps": steps}, _TURN)

    def _slot_of(self, node: Node) -> Slot | None:
        slots = self._ports.ledger.slots(self._ports.cluster.name)
        return slot_of(slots, node.instance_id)

    def _end(self, state: Mapping[str, Any], result: str) -> dict[str, Any]:
        return ended(self._ports, state, TimerKind.EXPIRATION, result)
