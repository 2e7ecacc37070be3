"""Events only wake: lost, doubled or interrupted, the burst ends with the same machines."""

import io
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from infra.local.demo.observer import Observer
from infra.local.demo.play import Player
from infra.local.demo.scenario import load_scenario
from infra.local.demo.timeline import Timeline
from infra.local.demo.world import World, WorldOptions
from tests.e2e.conftest import TestCluster, patient

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]


Happening = Callable[[World], None]
Play = Callable[[Happening, Happening, Path], Timeline]


@pytest.fixture(scope="module")
def play(cluster: TestCluster) -> Play:
    return partial(played, cluster)


def played(cluster: TestCluster, prepare: Happening, during: Happening, logs: Path) -> Timeline:
    """Play the burst of `inflate`; return what was seen."""
    console = Console(file=io.StringIO())
    scenario = patient(load_scenario("inflate"))
    options = WorldOptions(
        speed=10, keep_logs=logs, kubeconfig=cluster.kubeconfig, bare=cluster.bare
    )
    with World(options, console.print) as world:
        if world.foreign is not None:
            world.foreign.require_room()
        observer = Observer(world.cluster, world.client("ec2"))
        observer.start()
        prepare(world)
        meanwhile = threading.Thread(target=during, args=(world,))
        meanwhile.start()
        try:
            results = Player(world.cluster, observer, 10, console.print).play(scenario)
        finally:
            meanwhile.join()
            observer.stop()
        assert [result.failures for result in results] == [(), ()]
        return observer.timeline


def nothing(_: World) -> None:
    """Leave the world alone."""


def kill_forwarder(world: World) -> None:
    """Kill the forwarder in mid-burst, and let it come back as its Deployment would."""
    time.sleep(1.0)
    world.children.stop("forwarder", hard=True)
    time.sleep(1.0)
    world.start_forwarder()


@pytest.fixture(scope="module")
def undisturbed(play: Play, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Machines of a burst that nothing disturbs."""
    return len(play(nothing, nothing, tmp_path_factory.mktemp("undisturbed")).instances)


def test_a_forwarder_killed_in_mid_burst_changes_nothing(
    play: Play, undisturbed: int, tmp_path: Path
) -> None:
    assert len(play(nothing, kill_forwarder, tmp_path).instances) == undisturbed


def test_events_delivered_twice_change_nothing(
    play: Play, undisturbed: int, tmp_path: Path
) -> None:
    def duplicate(world: World) -> None:
        for kind in ("pod-pending", "node-ready", "node-empty", "node-deleted"):
            world.control("events/duplicate", **{"detail-type": kind, "count": 5})

    assert len(play(duplicate, nothing, tmp_path).instances) == undisturbed


@pytest.mark.parametrize("kind", ["pod-pending", "node-ready", "node-empty", "node-deleted"])
def test_a_lost_event_changes_nothing(
    kind: str, play: Play, undisturbed: int, tmp_path: Path
) -> None:
    def lose(world: World) -> None:
        world.control("events/drop", **{"detail-type": kind, "count": 1})

    assert len(play(lose, nothing, tmp_path).instances) == undisturbed
