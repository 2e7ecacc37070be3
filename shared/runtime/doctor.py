"""What `dovetail doctor` works with."""

from collections.abc import Mapping

from shared.runtime.system import environment
from shared.runtime.wiring import Right, Wiring
from shared.services.doctoring import Doctoring
from shared.settings import FunctionSettings


class DoctorRuntime:
    """The services of all attached clusters, for people."""

    def __init__(self, settings: FunctionSettings) -> None:
        """Prepare; nothing is connected yet."""
        self._wiring = Wiring(settings, Right.LAUNCH)

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted."""
        return tuple(one.name for one in self._wiring.registry.all())

    def service(self, cluster: str) -> Doctoring:
        """Return the service of one cluster."""
        return Doctoring(self._wiring.ports(cluster))


def doctor_runtime(variables: Mapping[str, str] | None = None) -> DoctorRuntime:
    """Return the runtime that the environment (by default the process's own) describes.

    Raises:
        SettingsError: If a variable is missing or wrong.
    """
    found = environment() if variables is None else variables
    return DoctorRuntime(FunctionSettings.from_environment(found))
