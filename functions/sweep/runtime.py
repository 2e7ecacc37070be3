"""What sweep works with: settings, adapters and its service of each cluster."""

import functools
from dataclasses import replace
from datetime import timedelta

from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.system import environment
from shared.runtime.wiring import Right
from shared.settings import SweepSettings
from shared.sweep.sweep import Sweep, SweepPolicy


class Runtime:
    """What the sweep function works with."""

    def __init__(self, settings: SweepSettings) -> None:
        self._wiring = ProvisioningWiring(settings, Right.TERMINATE)
        self._policy = SweepPolicy(
            pending_grace=timedelta(seconds=settings.pending_grace_seconds),
            orphan_grace=timedelta(seconds=settings.orphan_grace_seconds),
            registration=timedelta(seconds=settings.registration_seconds),
            window=timedelta(seconds=settings.disruption_window_seconds),
        )

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted."""
        return tuple(cluster_attachment.name for cluster_attachment in self._wiring.registry.all())

    def sweep_alone(self, cluster: str) -> None:
        """Call sweep for one cluster, without waiting for its answer."""
        self._wiring.outbox.invoke_sweep(cluster)

    def service(self, cluster: str) -> Sweep:
        """Return the service of one cluster."""
        drift = self._wiring.registry.one(cluster).drift
        return Sweep(self._wiring.ports(cluster), replace(self._policy, drift=drift))


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(SweepSettings.from_environment(environment()))
