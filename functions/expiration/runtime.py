"""The runtime of the expiration function: settings, adapters and one service per cluster."""

import functools

from shared.nodes.leave.expiration_timer import Expiration
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import TimerSettings


class ExpirationRuntime:
    """Settings and adapters of the expiration function."""

    def __init__(self, settings: TimerSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.INSIDE)

    def service(self, cluster: str) -> Expiration:
        """Return the service of one cluster."""
        return Expiration(self._wiring.ports(cluster))


@functools.cache
def load_runtime() -> ExpirationRuntime:
    """Return the runtime of this process, created on first use."""
    return ExpirationRuntime(TimerSettings.from_environment(environment()))
