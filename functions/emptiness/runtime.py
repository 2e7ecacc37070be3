"""What emptiness works with: settings, adapters and its service of each cluster."""

import functools

from shared.messages.wake import Message
from shared.node_lifecycle.emptiness import Emptiness
from shared.runtime.system import environment
from shared.runtime.wiring import Right, Wiring
from shared.settings import TimerSettings


class Runtime:
    """What the emptiness function works with."""

    def __init__(self, settings: TimerSettings) -> None:
        self._wiring = Wiring(settings, Right.INSIDE)

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def service(self, cluster: str) -> Emptiness:
        """Return the service of one cluster."""
        return Emptiness(self._wiring.ports(cluster))


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(TimerSettings.from_environment(environment()))
