"""The runtime of the refresh_catalog function: settings and adapters."""

import functools
from datetime import timedelta
from typing import Final

from shared.instance_types.catalog import load_catalog
from shared.instance_types.summary import CatalogSummary, summarize
from shared.runtime.catalog import catalog_written_at, make_linked_roles, regional_source
from shared.runtime.system import environment
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import RefreshCatalogSettings

# The schedule runs every hour, to write twice a day: slightly less than half a day, for jitter.
_FRESH: Final = timedelta(hours=11, minutes=30)


class RefreshCatalogRuntime:
    """Settings and adapters of the refresh_catalog function."""

    def __init__(self, settings: RefreshCatalogSettings) -> None:
        self._wiring = Wiring(settings, ActingRole.LAUNCH)
        self._settings = settings

    def is_fresh(self) -> bool:
        """Return whether the catalogue in the bucket is younger than half a day."""
        written = catalog_written_at(self._wiring)
        return written is not None and self._wiring.clock.now() - written < _FRESH

    def make_linked_roles(self) -> tuple[str, ...]:
        """Create the service-linked roles of EC2 that the account lacks; return the new ones.

        Raises:
            AutoscalerError: If they cannot be created, for example by a policy of the organisation.
        """
        return make_linked_roles(self._wiring)

    def refresh(self) -> CatalogSummary:
        """Write the catalogue of the Region to the bucket; return its summary."""
        source = regional_source(self._wiring, self._settings)
        return summarize(load_catalog(source.refresh()))


@functools.cache
def load_runtime() -> RefreshCatalogRuntime:
    """Return the runtime of this process, created on first use."""
    return RefreshCatalogRuntime(RefreshCatalogSettings.from_environment(environment()))
