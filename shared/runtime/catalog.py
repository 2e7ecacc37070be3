"""Makes the catalogue of a Region: for the bucket, or for `dovetail catalog`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.aws import linked_roles
from shared.aws.ec2 import catalog
from shared.aws.ec2.catalog_source import CatalogSource
from shared.aws.function_variables import function_variables
from shared.aws.session import Session
from shared.catalog.building import format_catalog
from shared.catalog.machine_setup import MachineSetup
from shared.catalog.overhead import VM_MEMORY_OVERHEAD_PERCENT
from shared.catalog.pod_addresses import PodNetwork
from shared.model.errors import NotFoundError, UnauthorizedError
from shared.runtime.system import SystemClock, region
from shared.runtime.wiring import Wiring
from shared.settings import RefreshCatalogSettings

_TIMEOUT: Final = timedelta(seconds=60)
_FUNCTION: Final = "dovetail-refresh-catalog"
_PRICING_REGION: Final[str] = RefreshCatalogSettings.model_fields["pricing_region"].default
_DEFAULT: Final = MachineSetup(memory_percent=VM_MEMORY_OVERHEAD_PERCENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCatalog:
    """A catalogue, and whose settings of machines it has.

    Attributes:
        text: As the bucket would hold it.
        region: Of its types and prices.
        deployed: Whether machines are set up as the control plane of the Region says; otherwise by
            the defaults.
    """

    text: str
    region: str
    deployed: bool


def make_catalog(name: str) -> MadeCatalog:
    """Return the catalogue of a Region as the bucket would hold it; nothing is written.

    Machines are set up as the control plane of the Region says, if there is one whose function the
    caller may read.

    Args:
        name: Of the Region; empty for that of the profile.

    Raises:
        AutoscalerError: If AWS cannot be asked, or no instance type has a price.
        SettingsError: If a variable of the function is wrong.
    """
    session = Session(region=name or region(), api_timeout=_TIMEOUT)
    deployed = deployed_settings(session)
    source = CatalogSource(
        session,
        bucket="",
        pricing_region=deployed.pricing_region if deployed else _PRICING_REGION,
        clock=SystemClock(),
        setup=machine_setup(deployed) if deployed else _DEFAULT,
    )
    text = format_catalog(source.document())
    return MadeCatalog(text=text, region=session.region, deployed=deployed is not None)


def deployed_settings(session: Session) -> RefreshCatalogSettings | None:
    """Return the settings of the catalogue in the session's Region.

    None where there is no control plane, or the caller may not read its function.

    Raises:
        SettingsError: If a variable of the function is wrong.
    """
    try:
        variables = function_variables(session, _FUNCTION)
    except (NotFoundError, UnauthorizedError):
        return None
    return RefreshCatalogSettings.from_environment(variables)


def machine_setup(settings: RefreshCatalogSettings) -> MachineSetup:
    """Return how the machines of a Region are set up."""
    network = PodNetwork(
        prefix_delegation=settings.prefix_delegation,
        reserved_interfaces=settings.reserved_interfaces,
        density_limited=settings.density_limited,
        pod_interfaces=settings.pod_interfaces,
    )
    return MachineSetup(network=network, memory_percent=settings.vm_memory_overhead_percent)


def regional_source(wiring: Wiring, settings: RefreshCatalogSettings) -> CatalogSource:
    """Return what writes the catalogue of the process's Region to its bucket."""
    return CatalogSource(
        wiring.session,
        bucket=wiring.settings.bucket,
        pricing_region=settings.pricing_region,
        clock=wiring.clock,
        setup=machine_setup(settings),
    )


def make_linked_roles(wiring: Wiring) -> tuple[str, ...]:
    """Make the service-linked roles of EC2 that the account lacks; return those made."""
    return linked_roles.make_linked_roles(wiring.session)


def catalog_written_at(wiring: Wiring) -> datetime | None:
    """Return when the catalogue in the bucket was written; None if there is none."""
    return catalog.catalog_written_at(wiring.session, wiring.settings.bucket)
