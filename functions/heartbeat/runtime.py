"""What heartbeat works with: settings and adapters."""

import functools
from datetime import datetime, timedelta
from typing import Final

from shared.messages.wake import Message
from shared.runtime.system import environment
from shared.runtime.wiring import Right, Wiring
from shared.settings import FunctionSettings
from shared.timers.heartbeats import note_forwarder

# The bus gives a message up after an hour.
_OLDEST: Final = timedelta(hours=1)


class Runtime:
    """What the heartbeat function works with; it calls no cluster."""

    def __init__(self, settings: FunctionSettings) -> None:
        self._wiring = Wiring(settings, Right.INSIDE)

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def note(self, cluster: str, at: datetime) -> None:
        """Record a heartbeat of a cluster's forwarder; a time in the future is cut to now."""
        now = self._wiring.clock.now()
        note_forwarder(self._wiring.ledger, cluster, max(min(at, now), now - _OLDEST))


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(FunctionSettings.from_environment(environment()))
