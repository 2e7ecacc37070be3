"""Instances that boot as long as those of the same trace in virtual time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from infra.local.demo.world import World
from tests.real.nodes import HollowNodes
from tests.simulation.schedule.seeded_random import between
from tests.weeks.kubelets import BOOT_SECONDS

# From launch until EC2 says that it runs, and from the start of a kubelet until its Node is Ready.
_BEFORE_AND_AFTER_SECONDS: Final = 5.0


class DrawnNodes(HollowNodes):
    """Nodes that are Ready when type, zone and minute say so.

    Attributes:
        begun: When the trace began, in seconds since 1970; nothing boots before.
    """

    def __init__(self, program: Path, world: World, *, seed: int, logs: Path) -> None:
        super().__init__(program, world, boot_seconds=0, logs=logs)
        self.begun = 0.0
        self._seed = seed

    def boots_in(self, found: Mapping[str, Any]) -> float:
        minute = int((found["LaunchTime"].timestamp() - self.begun) // 60)
        where = (found["InstanceType"], found["Placement"]["AvailabilityZone"], minute)
        boots = between(*BOOT_SECONDS, self._seed, "boot", *where)
        return boots - _BEFORE_AND_AFTER_SECONDS
