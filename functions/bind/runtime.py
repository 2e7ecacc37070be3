"""What bind works with: settings, adapters and its service of each cluster."""

import functools

from shared.messages.wake import Message
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.node_lifecycle.binding import Binding
from shared.runtime.system import environment
from shared.runtime.wiring import Right, Wiring
from shared.settings import BindSettings


class Runtime:
    """What the bind function works with."""

    def __init__(self, settings: BindSettings) -> None:
        self._wiring = Wiring(settings, Right.INSIDE)
        self._policy = LaunchPolicy(binding=BindingPolicy(settings.binding_policy))

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def service(self, cluster: str) -> Binding:
        """Return the service of one cluster."""
        return Binding(self._wiring.ports(cluster), self._policy)


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(BindSettings.from_environment(environment()))
