"""The runtime of the bind function: settings, adapters and one service per cluster."""

import functools

from shared.model.messages.message import Message
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.nodes.join.node_binding import Binding
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import BindSettings


class BindRuntime:
    """Settings and adapters of the bind function."""

    def __init__(self, settings: BindSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.INSIDE)
        self._policy = LaunchPolicy(binding_policy=BindingPolicy(settings.binding_policy))

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def service(self, cluster: str) -> Binding:
        """Return the service of one cluster."""
        return Binding(self._wiring.ports(cluster), self._policy)


@functools.cache
def load_runtime() -> BindRuntime:
    """Return the runtime of this process, created on first use."""
    return BindRuntime(BindSettings.from_environment(environment()))
