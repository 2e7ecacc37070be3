"""What replacement works with: settings, adapters and its service of each cluster."""

import functools

from shared.node_lifecycle.replacement import Replacement
from shared.runtime.system import environment
from shared.runtime.wiring import Right, Wiring
from shared.settings import TimerSettings


class Runtime:
    """What the replacement function works with."""

    def __init__(self, settings: TimerSettings) -> None:
        self._wiring = Wiring(settings, Right.INSIDE)

    def service(self, cluster: str) -> Replacement:
        """Return the service of one cluster."""
        return Replacement(self._wiring.ports(cluster))


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(TimerSettings.from_environment(environment()))
