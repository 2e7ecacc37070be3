"""The runtime of the registration function: settings, adapters and one service per cluster."""

import functools

from shared.nodes.join.registration import Registration
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import TimerSettings


class RegistrationRuntime:
    """Settings and adapters of the registration function."""

    def __init__(self, settings: TimerSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.INSIDE)

    def service(self, cluster: str) -> Registration:
        """Return the service of one cluster."""
        return Registration(self._wiring.ports(cluster))


@functools.cache
def load_runtime() -> RegistrationRuntime:
    """Return the runtime of this process, created on first use."""
    return RegistrationRuntime(TimerSettings.from_environment(environment()))
