"""Events only wake: lost, doubled or interrupted, the burst ends with the same machines."""

import io
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from infra.local.demo.observer import Observer
from infra.local.demo.play import Player
from infra.local.demo.scenario import load_scenario
from infra.local.demo.timeline import Timeline
from infra.local.demo.world import World, WorldOptions

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]


def play(prepare: Callable[[World], None], during: Callable[[World], None], logs: Path) -> Timeline:
    """Play the burst of `inflate`; return what was seen."""
    console = Console(file=io.StringIO())
    scenario = load_scenario("inflate")
    with World(WorldOptions(speed=10, keep_logs=logs), console.print) as world:
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
        assert [one.failures for one in results] == [(), ()]
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
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Machines of a burst that nothing disturbs."""
    return len(play(nothing, nothing, tmp_path_factory.mktemp("undisturbed")).instances)


def test_a_forwarder_killed_in_mid_burst_changes_nothing(undisturbed: int, tmp_path: Path) -> None:
    assert len(play(nothing, kill_forwarder, tmp_path).instances) == undisturbed


def test_events_delivered_twice_change_nothing(undisturbed: int, tmp_path: Path) -> None:
    def duplicate(world: World) -> None:
        for kind in ("pod-pending", "node-ready", "node-empty", "node-deleted"):
            world.control("events/duplicate", **{"detail-type": kind, "count": 5})

    assert len(play(duplicate, nothing, tmp_path).instances) == undisturbed


@pytest.mark.parametrize("kind", ["pod-pending", "node-ready", "node-empty", "node-deleted"])
def test_a_lost_event_changes_nothing(kind: str, undisturbed: int, tmp_path: Path) -> None:
    def lose(world: World) -> None:
        world.control("events/drop", **{"detail-type": kind, "count": 1})

    assert len(play(lose, nothing, tmp_path).instances) == undisturbed
