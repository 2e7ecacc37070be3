"""The runtime of the replacement function: settings, adapters and one service per cluster."""

import functools

from shared.nodes.leave.replacement import Replacement
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import TimerSettings


class ReplacementRuntime:
    """Settings and adapters of the replacement function."""

    def __init__(self, settings: TimerSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.INSIDE)

    def service(self, cluster: str) -> Replacement:
        """Return the service of one cluster."""
        return Replacement(self._wiring.ports(cluster))


@functools.cache
def load_runtime() -> ReplacementRuntime:
    """Return the runtime of this process, created on first use."""
    return ReplacementRuntime(TimerSettings.from_environment(environment()))
