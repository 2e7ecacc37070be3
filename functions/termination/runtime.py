"""What termination works with: settings, adapters and its service of each cluster."""

import functools
from datetime import timedelta

from shared.messages.wake import Message
from shared.node_lifecycle.termination import Termination
from shared.runtime.system import environment
from shared.runtime.wiring import Right, Wiring
from shared.settings import TerminationSettings


class Runtime:
    """What the termination function works with."""

    def __init__(self, settings: TerminationSettings) -> None:
        self._wiring = Wiring(settings, Right.TERMINATE)
        seconds = settings.drain_deadline_seconds
        self._deadline = timedelta(seconds=seconds) if seconds else None

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def service(self, cluster: str) -> Termination:
        """Return the service of one cluster."""
        return Termination(self._wiring.ports(cluster), self._deadline)


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(TerminationSettings.from_environment(environment()))
