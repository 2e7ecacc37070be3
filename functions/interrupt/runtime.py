"""The runtime of the interrupt function: settings, adapters and one service per cluster."""

import functools

from shared.nodes.leave.interruption import Interruption, NodeIndex
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import TimerSettings


class InterruptRuntime:
    """Settings and adapters of the interrupt function."""

    def __init__(self, settings: TimerSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.TERMINATE)
        self._index = functools.cache(lambda _cluster: NodeIndex())

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster of an instance, None if Dovetail did not launch it."""
        return self._wiring.ledger.cluster_of(instance_id)

    def service(self, cluster: str) -> Interruption:
        """Return the service of one cluster."""
        return Interruption(self._wiring.ports(cluster), self._index(cluster))


@functools.cache
def load_runtime() -> InterruptRuntime:
    """Return the runtime of this process, created on first use."""
    return InterruptRuntime(TimerSettings.from_environment(environment()))
