"""The runtime of the emptiness function: settings, adapters and one service per cluster."""

import functools

from shared.model.messages.message import Message
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import TimerSettings


class EmptinessRuntime:
    """Settings and adapters of the emptiness function."""

    def __init__(self, settings: TimerSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.INSIDE)

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def service(self, cluster: str) -> Emptiness:
        """Return the service of one cluster."""
        return Emptiness(self._wiring.ports(cluster))


@functools.cache
def load_runtime() -> EmptinessRuntime:
    """Return the runtime of this process, created on first use."""
    return EmptinessRuntime(TimerSettings.from_environment(environment()))
