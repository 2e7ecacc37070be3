"""A Region's catalogue, made with the rights of whoever runs `dovetail catalog`."""

from datetime import timedelta
from typing import Final

from shared.aws.ec2.catalog_source import CatalogSource
from shared.aws.session import Session
from shared.catalog.building import format_catalog
from shared.runtime.system import SystemClock, region
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
    )
    return format_catalog(source.document())
