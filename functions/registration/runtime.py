"""What registration works with: settings, adapters and its service of each cluster."""

import functools

from shared.node_lifecycle.registration import Registration
from shared.runtime.system import environment
from shared.runtime.wiring import Right, Wiring
from shared.settings import TimerSettings


class Runtime:
    """What the registration function works with."""

    def __init__(self, settings: TimerSettings) -> None:
        self._wiring = Wiring(settings, Right.INSIDE)

    def service(self, cluster: str) -> Registration:
        """Return the service of one cluster."""
        return Registration(self._wiring.ports(cluster))


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(TimerSettings.from_environment(environment()))
