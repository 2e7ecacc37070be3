"""Expiration: a node older than its Provisioner allows is removed."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from shared.disruption.expiration import expires_in
from shared.ports import ClusterPorts, TimerKind
from shared.services.removing import remove
from shared.services.timers import again, done, text_of

_SOON = timedelta(seconds=1)


class Expiring:
    """Watches over the age of nodes of one cluster."""

    def __init__(self, ports: ClusterPorts) -> None:
        """Prepare for one cluster."""
        self._ports = ports

    def step(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Take the timer's next step: the ttl counts as it stands in the Provisioner now.

        Raises:
            InvalidMessageError: If the state lacks a field.
            RetryableError: If the world could not be read or changed now.
        """
        node = self._ports.cluster.node(text_of(state, "node"))
        if node is None or node.uid != text_of(state, "uid") or node.deletion_at is not None:
            return self._end(state, "gone")
        provisioners, _ = self._ports.cluster.provisioners()
        owner = next((one for one in provisioners if one.name == node.provisioner), None)
        if self._ports.brakes.holds or owner is None or not node.is_ours:
            return self._end(state, "nobody's to expire")
        if owner.paused or owner.shadow:
            return self._end(state, "nobody's to expire")
        left = expires_in(node, owner.ttl_until_expired, self._ports.clock.now())
        if left is None:
            return self._end(state, "lives for ever")
        if left > timedelta(0):
            return again(state, left)
        if not remove(self._ports, node, "expiration"):
            return again(state, _SOON)
        return self._end(state, "removed")

    def _end(self, state: Mapping[str, Any], result: str) -> dict[str, Any]:
        self._ports.ledger.drop_timer(
            self._ports.cluster.name, text_of(state, "uid"), TimerKind.EXPIRATION
        )
        return done(state, result)
