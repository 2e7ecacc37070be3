"""What refresh_catalog works with: settings, adapters and its service of each cluster."""

import functools
from datetime import timedelta
from typing import Final

from shared.catalog.reading import load_catalog
from shared.catalog.summary import CatalogSummary, summarize
from shared.runtime.catalog import catalog_written_at, make_linked_roles, regional_source
from shared.runtime.system import environment
from shared.runtime.wiring import Right, Wiring
from shared.settings import RefreshCatalogSettings

# The schedule looks every hour and writes twice a day: less than half a day, for its jitter.
_FRESH: Final = timedelta(hours=11, minutes=30)


class Runtime:
    """What the refresh_catalog function works with."""

    def __init__(self, settings: RefreshCatalogSettings) -> None:
        self._wiring = Wiring(settings, Right.LAUNCH)
        self._settings = settings

    def is_fresh(self) -> bool:
        """Return whether the catalogue in the bucket is younger than half a day."""
        written = catalog_written_at(self._wiring)
        return written is not None and self._wiring.clock.now() - written < _FRESH

    def make_linked_roles(self) -> tuple[str, ...]:
        """Make the service-linked roles that EC2 needs of the account; return those made.

        Raises:
            AutoscalerError: If they cannot be made, as under a policy of the organisation.
        """
        return make_linked_roles(self._wiring)

    def refresh(self) -> CatalogSummary:
        """Write the catalogue of the Region to the bucket; return what it holds."""
        source = regional_source(self._wiring, self._settings)
        return summarize(load_catalog(source.refresh()))


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(RefreshCatalogSettings.from_environment(environment()))
