"""What writes the catalogue of a Region to the bucket."""

from datetime import datetime

from shared.aws import linked_roles
from shared.aws.ec2 import catalog
from shared.aws.ec2.catalog_source import CatalogSource
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.pod_addresses import PodNetwork
from shared.runtime.wiring import Wiring
from shared.settings import RefreshCatalogSettings


def instance_setup(settings: RefreshCatalogSettings) -> InstanceSetup:
    """Return how the instances of a Region are set up."""
    network = PodNetwork(
        prefix_delegation=settings.prefix_delegation,
        reserved_interfaces=settings.reserved_interfaces,
        density_limited=settings.density_limited,
        pod_interfaces=settings.pod_interfaces,
    )
    return InstanceSetup(network=network, memory_percent=settings.vm_memory_overhead_percent)


def regional_source(wiring: Wiring, settings: RefreshCatalogSettings) -> CatalogSource:
    """Return the source that writes the catalogue of the process's Region to its bucket."""
    return CatalogSource(
        wiring.session,
        bucket=wiring.settings.bucket,
        pricing_region=settings.pricing_region,
        clock=wiring.clock,
        setup=instance_setup(settings),
    )


def make_linked_roles(wiring: Wiring) -> tuple[str, ...]:
    """Create the service-linked roles of EC2 that the account lacks; return the new ones."""
    return linked_roles.make_linked_roles(wiring.session)


def catalog_written_at(wiring: Wiring) -> datetime | None:
    """Return when the catalogue in the bucket was written; None if there is none."""
    return catalog.catalog_written_at(wiring.session, wiring.settings.bucket)
