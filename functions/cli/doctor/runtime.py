"""The runtime of `dovetail doctor` and `dovetail why`, with their user's permissions."""

from collections.abc import Mapping

from functions.cli.deployed_settings import function_settings
from functions.cli.doctor.doctor import Doctor
from functions.cli.doctor.why import Why
from functions.cli.doctor.why_group import WhyGroup
from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.wiring import ActingRole


class DoctorRuntime:
    """The services of all attached clusters, for people.

    Args:
        variables: The environment (by default the process's own). One without any of Dovetail's
            variables is filled with those of a deployed function, so that users need not copy them.

    Raises:
        SettingsError: If a variable is missing or wrong.
        NotFoundError: If there is no control plane in the Region.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._wiring = ProvisioningWiring(function_settings(variables), ActingRole.OWN)

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted."""
        return self._wiring.registry.names()

    def service(self, cluster: str) -> Doctor:
        """Return the service of one cluster."""
        return Doctor(self._wiring.ports(cluster))

    def why(self, cluster: str) -> tuple[Why, WhyGroup]:
        """Return the services that explain pods and nodes of one cluster, and groups of them."""
        ports = self._wiring.ports(cluster)
        why = Why(ports, drift=self._wiring.registry.one(cluster).drift)
        return why, WhyGroup(ports, why)
