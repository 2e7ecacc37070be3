"""Makes the catalogue of a Region: for the bucket, or for `dovetail catalog`."""

from datetime import datetime, timedelta
from typing import Final

from shared.aws import linked_roles
from shared.aws.ec2 import catalog
from shared.aws.ec2.catalog_source import CatalogSource
from shared.aws.session import Session
from shared.catalog.building import format_catalog
from shared.catalog.machine_setup import MachineSetup
from shared.catalog.overhead import VM_MEMORY_OVERHEAD_PERCENT
from shared.runtime.system import SystemClock, region
from shared.runtime.wiring import Wiring
from shared.settings import RefreshCatalogSettings

_TIMEOUT: Final = timedelta(seconds=60)


def make_catalog(name: str) -> str:
    """Return the catalogue of a Region as the bucket would hold it; nothing is written.

    Args:
        name: Of the Region; empty for that of the profile.

    Raises:
        AutoscalerError: If AWS cannot be asked, or no instance type has a price.
    """
    source = CatalogSource(
        Session(region=name or region(), api_timeout=_TIMEOUT),
        bucket="",
        pricing_region=str(RefreshCatalogSettings.model_fields["pricing_region"].default),
        clock=SystemClock(),
        setup=MachineSetup(memory_percent=VM_MEMORY_OVERHEAD_PERCENT),
    )
    return format_catalog(source.document())


def regional_source(wiring: Wiring, pricing_region: str, setup: MachineSetup) -> CatalogSource:
    """Return what writes the catalogue of the process's Region to its bucket."""
    return CatalogSource(
        wiring.session,
        bucket=wiring.settings.bucket,
        pricing_region=pricing_region,
        clock=wiring.clock,
        setup=setup,
    )


def make_linked_roles(wiring: Wiring) -> tuple[str, ...]:
    """Make the service-linked roles of EC2 that the account lacks; return those made."""
    return linked_roles.make_linked_roles(wiring.session)


def catalog_written_at(wiring: Wiring) -> datetime | None:
    """Return when the catalogue in the bucket was written; None if there is none."""
    return catalog.catalog_written_at(wiring.session, wiring.settings.bucket)
