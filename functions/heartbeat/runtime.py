"""The runtime of the heartbeat function: settings and adapters."""

import functools
from datetime import datetime, timedelta
from typing import Final

from shared.model.messages.message import Message
from shared.nodes.timers.heartbeats import save_forwarder_heartbeat
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import FunctionSettings

# The bus drops a message that it could not deliver for an hour.
_OLDEST: Final = timedelta(hours=1)


class HeartbeatRuntime:
    """Settings and adapters of the heartbeat function; it calls no cluster."""

    def __init__(self, settings: FunctionSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.INSIDE)

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def record_heartbeat(self, cluster: str, at: datetime) -> None:
        """Record a heartbeat of a cluster's forwarder; its time is limited to the last hour."""
        now = self._wiring.clock.now()
        save_forwarder_heartbeat(self._wiring.ledger, cluster, max(min(at, now), now - _OLDEST))


@functools.cache
def load_runtime() -> HeartbeatRuntime:
    """Return the runtime of this process, created on first use."""
    return HeartbeatRuntime(FunctionSettings.from_environment(environment()))
