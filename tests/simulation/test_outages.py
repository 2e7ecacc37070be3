"""Services that are away for minutes, alone and two together, while a cluster grows and shrinks."""

from itertools import combinations_with_replacement
from typing import Final

import pytest

from tests.simulation.campaigns.crash_points import SCENES
from tests.simulation.campaigns.hard_days import run
from tests.simulation.schedule.faults import Action, CallFault, CallFaults, Site
from tests.simulation.schedule.region_faults import SERVICES
from tests.simulation.schedule.running import run_scene
from tests.simulation.schedule.world import World

SCENE: Final = SCENES[0]
(CLUSTER,) = SCENE.clusters
# While the first pods come, and for how long.
BEGINS, SECONDS = 2.0, 300.0


@pytest.mark.parametrize(("one", "another"), [*combinations_with_replacement(SERVICES, 2)])
def test_nothing_is_doubled_or_left_after_services_were_away(one: str, another: str) -> None:
    world = World(SCENE, CallFaults.only((), 0))

    def leave() -> None:
        for service in (one, another):
            world.weather.leave(service, CLUSTER.name, SECONDS)

    world.kernel.after(BEGINS, leave)
    assert not run(world, SECONDS, until_quiet=600)
    assert len(world.region.machines) <= run_scene(SCENE, CallFaults.only((), 0)).machines


@pytest.mark.parametrize("kind", ["queue", "fast lane"])
def test_a_message_that_comes_a_hundred_times_launches_nothing_more(kind: str) -> None:
    fault = CallFault(Site("bus", kind, "pod-pending"), 1, Action.HUNDREDFOLD)
    outcome = run_scene(SCENE, CallFaults.only([fault], 0))
    assert not outcome.broken, outcome.text
    assert outcome.fired == (fault,)
    assert outcome.machines <= run_scene(SCENE, CallFaults.only((), 0)).machines
