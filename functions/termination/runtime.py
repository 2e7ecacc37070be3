"""The runtime of the termination function: settings, adapters and one service per cluster."""

import functools
from datetime import timedelta

from shared.model.messages.message import Message
from shared.nodes.leave.termination import Termination
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import TerminationSettings


class TerminationRuntime:
    """Settings and adapters of the termination function."""

    def __init__(self, settings: TerminationSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.TERMINATE)
        seconds = settings.drain_deadline_seconds
        self._deadline = timedelta(seconds=seconds) if seconds else None

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def service(self, cluster: str) -> Termination:
        """Return the service of one cluster."""
        return Termination(self._wiring.ports(cluster), self._deadline)


@functools.cache
def load_runtime() -> TerminationRuntime:
    """Return the runtime of this process, created on first use."""
    return TerminationRuntime(TerminationSettings.from_environment(environment()))
