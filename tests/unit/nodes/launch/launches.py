"""Worlds in which something is launched."""

from typing import Any

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.pods import Pod
from tests.builders import ZONES, needs, offering, pods, provisioner
from tests.unit.worlds import SECOND, World

SPOT = CapacityType.SPOT
ANY_WAY = needs(keys.ARCH, "In", "amd64")


def apart(count: int) -> tuple[Pod, ...]:
    """Return pods that each need a machine of their own, an m5.large if there is one."""
    return pods(count, cpu=1500, host_ports=(("0.0.0.0", "TCP", 80),))


def two_nodes(**changes: Any) -> World:
    return World(provisioner(**changes), *apart(2))


def intents(world: World) -> tuple[int, int]:
    """Return how many intents are open, and how many were closed."""
    return len(world.ledger.intents), len(world.ledger.closed)


def open_intent(world: World) -> None:
    """Leave a launch open whose answer was lost, its machines there."""
    world.cloud.lose_next_answer()
    world.provision()
    world.advance(10 * SECOND)


def without_spot() -> World:
    """A world that must fall back to on-demand: a second attempt is made."""
    world = World(provisioner(requirements=ANY_WAY), *apart(2))
    world.cloud.run_out_of(
        *(
            offering(instance_type.name, zone, SPOT)
            for instance_type in world.catalog.instance_types()
            for zone in ZONES
        )
    )
    return world
