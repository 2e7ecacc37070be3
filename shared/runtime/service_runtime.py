"""The runtime of a function that serves one cluster at a time."""

import functools
from collections.abc import Callable
from typing import Generic, TypeVar

from shared.model.messages.message import Message
from shared.ports import NodePorts
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import FunctionSettings

S = TypeVar("S", bound=FunctionSettings)
T_co = TypeVar("T_co", covariant=True)


class ServiceRuntime(Generic[T_co]):
    """Adapters of a function that acts on nodes, and its service of each cluster.

    Args:
        service_of: Returns the service of the cluster with these ports.
    """

    def __init__(
        self,
        settings: FunctionSettings,
        role: ActingRole,
        service_of: Callable[[NodePorts], T_co],
    ) -> None:
        self._wiring = Wiring(settings, role)
        self._service_of = service_of

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster of an instance, None if Dovetail did not launch it."""
        return self._wiring.ledger.cluster_of(instance_id)

    def service(self, cluster: str) -> T_co:
        """Return the service of one cluster."""
        return self._service_of(self._wiring.ports(cluster))


def runtime_of(
    settings_type: type[S],
    role: ActingRole,
    services: Callable[[S], Callable[[NodePorts], T_co]],
) -> Callable[[], ServiceRuntime[T_co]]:
    """Return the function that returns the runtime of this process, created on first use.

    Args:
        settings_type: The settings, which are read from the environment.
        services: Returns, for the settings, what makes the service of a cluster of its ports.
    """

    @functools.cache
    def load_runtime() -> ServiceRuntime[T_co]:
        settings = settings_type.from_environment(environment())
        return ServiceRuntime(settings, role, services(settings))

    return load_runtime
