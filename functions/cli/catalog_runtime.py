"""Makes the catalogue of a Region for `dovetail catalog` and `dovetail report`."""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from functions.cli.deployed_settings import catalog_settings
from shared.aws.ec2.catalog_source import CatalogSource
from shared.aws.session import Session
from shared.instance_types.building import format_catalog
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.overhead import VM_MEMORY_OVERHEAD_PERCENT
from shared.runtime.catalog import instance_setup
from shared.runtime.system import SystemClock, region
from shared.settings import PRICING_REGION

_TIMEOUT: Final = timedelta(seconds=60)
_DEFAULT: Final = InstanceSetup(memory_percent=VM_MEMORY_OVERHEAD_PERCENT)


class MadeCatalog(Struct, frozen=True, kw_only=True):
    """A catalogue, and whose settings of instances it has.

    Attributes:
        text: As the bucket would hold it.
        region: Of its types and prices.
        deployed: Whether instances are set up as the control plane of the Region says; otherwise by
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
    deployed = catalog_settings(session)
    source = CatalogSource(
        session,
        bucket="",
        pricing_region=deployed.pricing_region if deployed else PRICING_REGION,
        clock=SystemClock(),
        setup=instance_setup(deployed) if deployed else _DEFAULT,
    )
    text = format_catalog(source.document())
    return MadeCatalog(text=text, region=session.region, deployed=deployed is not None)
