"""The runtime of the sweep function: settings, adapters and one service per cluster."""

import functools
from datetime import timedelta

from shared.model.values import replace
from shared.provisioning.sweep.sweep import Sweep, SweepPolicy
from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole
from shared.settings import SweepSettings


class SweepRuntime:
    """Settings and adapters of the sweep function."""

    def __init__(self, settings: SweepSettings) -> None:
        self._wiring = ProvisioningWiring(settings, ActingRole.TERMINATE)
        self._policy = SweepPolicy(
            pending_grace=timedelta(seconds=settings.pending_grace_seconds),
            orphan_grace=timedelta(seconds=settings.orphan_grace_seconds),
            registration=timedelta(seconds=settings.registration_seconds),
            window=timedelta(seconds=settings.disruption_window_seconds),
        )

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted."""
        return tuple(cluster_attachment.name for cluster_attachment in self._wiring.registry.all())

    def invoke_sweep(self, cluster: str) -> None:
        """Invoke sweep for one cluster, without waiting for its response."""
        self._wiring.outbox.invoke_sweep(cluster)

    def service(self, cluster: str) -> Sweep:
        """Return the service of one cluster."""
        drift = self._wiring.registry.one(cluster).drift
        return Sweep(self._wiring.ports(cluster), replace(self._policy, drift=drift))


@functools.cache
def load_runtime() -> SweepRuntime:
    """Return the runtime of this process, created on first use."""
    return SweepRuntime(SweepSettings.from_environment(environment()))
