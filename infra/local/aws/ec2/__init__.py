"""The embedded EC2: the emulator's API made to behave where the product looks closely.

A fleet that chooses, instances that take time to start and to end, prices, capacity that runs
out, and an account ready for a first cluster.
`install` changes the emulator inside this process; the result's `close` undoes all of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra.local.aws.access import eks
from infra.local.aws.control import Control
from infra.local.aws.ec2 import (
    fleet,
    gaps,
    lifecycle,
    listing,
    pricing,
    spot_prices,
    templates,
    topology,
)
from infra.local.aws.ec2.catalog import type_listing
from infra.local.aws.ec2.catalog.price_book import embedded_catalog, read_price_book
from infra.local.aws.ec2.schedule import Agenda
from infra.local.aws.ec2.verbs import register
from infra.local.aws.ec2.world import World
from infra.local.aws.moto_patches import Repairs, check_version

__all__ = ["Installation", "install"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What `install` changed: the state, the list of replaced names, and the way back."""

    world: World
    repairs: Repairs

    def close(self) -> None:
        """Stop the clocks and restore the emulator; doing it twice is harmless."""
        self.world.agenda.close()
        self.world.outbox.close()
        self.repairs.undo()


def install(
    control: Control,
    catalog_path: Path | None = None,
    *,
    agenda: Agenda | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Installation:
    """Put the embedded EC2 into the emulator of this process, once.

    Args:
        catalog_path: a catalogue file for prices, by default the embedded one of the control's
            Region; what the file lacks, or all when there is none, is computed.
    """
    check_version()
    clock = agenda or Agenda()

    def emit(*args: Any, **kwargs: Any) -> str:
        return control.emit_event(*args, **kwargs)

    world = World(
        region=control.region,
        account=control.account_id,
        book=read_price_book(catalog_path or embedded_catalog(control.region)),
        agenda=clock,
        outbox=Agenda(monotonic=clock.monotonic, threaded=clock.threaded),
        emit=emit,
        now=now,
        launched=control.launched,
        harmed=control.harmed,
    )
    repairs = Repairs()
    try:
        fleet.repair(repairs, world)
        templates.repair(repairs)
        lifecycle.repair(repairs, world)
        listing.repair(repairs, world)
        topology.repair(repairs, world)
        type_listing.repair(repairs)
        spot_prices.repair(repairs, world)
        gaps.repair(repairs)
        forget_eks = eks.repair(repairs)
    except BaseException:
        repairs.undo()
        raise
    installation = Installation(world=world, repairs=repairs)
    register(control, world)
    control.service(pricing.TARGET)(pricing.products(world))
    control.on_reset(world.reset)
    control.on_reset(forget_eks)
    control.on_stop(installation.close)
    return installation
