"""The runtime of `dovetail doctor` and `dovetail why`, with their user's permissions."""

from collections.abc import Mapping
from typing import Final

from shared.aws.function_variables import function_variables
from shared.aws.session import Session
from shared.doctor.doctor import Doctoring
from shared.doctor.why import Why
from shared.model.errors import NotFoundError
from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.system import environment, region
from shared.runtime.wiring import Right
from shared.settings import PREFIX, FunctionSettings

_ASKED: Final = "dovetail-sweep"


class DoctorRuntime:
    """The services of all attached clusters, for people."""

    def __init__(self, settings: FunctionSettings) -> None:
        self._wiring = ProvisioningWiring(settings, Right.OWN)

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted."""
        return self._wiring.registry.names()

    def service(self, cluster: str) -> Doctoring:
        """Return the service of one cluster."""
        return Doctoring(self._wiring.ports(cluster))

    def why(self, cluster: str) -> Why:
        """Return what answers about pods and nodes of one cluster."""
        return Why(self._wiring.ports(cluster), drift=self._wiring.registry.one(cluster).drift)


def doctor_runtime(variables: Mapping[str, str] | None = None) -> DoctorRuntime:
    """Return the runtime that the environment (by default the process's own) describes.

    An environment without any of Dovetail's variables is filled with those of a deployed function,
    so that users need not copy them.

    Raises:
        SettingsError: If a variable is missing or wrong.
        NotFoundError: If there is no control plane in the Region.
    """
    return DoctorRuntime(function_settings(variables))


def function_settings(variables: Mapping[str, str] | None = None) -> FunctionSettings:
    """Return the settings of a function, for a user's own process; filled as `doctor_runtime` does.

    Raises:
        SettingsError: If a variable is missing or wrong.
        NotFoundError: If there is no control plane in the Region.
    """
    found = environment() if variables is None else variables
    if not any(f"{PREFIX}{name.upper()}" in found for name in FunctionSettings.model_fields):
        found = _deployed()
    return FunctionSettings.from_environment(found)


def _deployed() -> Mapping[str, str]:
    try:
        return function_variables(Session(region=region()), _ASKED)
    except NotFoundError as error:
        raise NotFoundError(
            f"no function {_ASKED} in {region()}: set AWS_REGION to where the control plane is, "
            "or deploy it"
        ) from error
