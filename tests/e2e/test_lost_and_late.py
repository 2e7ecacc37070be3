"""Events only wake: lost, doubled or interrupted, the burst gets its machines, and none besides."""

import io
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from infra.local.demo.observer import Observer
from infra.local.demo.play import Player
from infra.local.demo.scenario import EXAMPLES, Scenario, load_scenario
from infra.local.demo.world import World, WorldOptions
from infra.local.harm import Harm, read_harm
from shared.model.policy import LaunchPolicy
from tests.e2e.conftest import TestCluster, patient
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

KINDS = ("pod-pending", "node-ready", "node-empty", "node-deleted")

Happening = Callable[[World], None]
Play = Callable[..., Harm]


@pytest.fixture
def play(cluster: TestCluster, tmp_path: Path) -> Play:
    return partial(played, cluster, one_pod_on_a_machine(tmp_path), tmp_path / "logs")


def one_pod_on_a_machine(folder: Path) -> Scenario:
    """Return the burst of `inflate` with machines that have room for one of its pods each.

    However many plans it takes, which depends on how fast pods are made, it takes a machine a pod.
    """
    shutil.copytree(EXAMPLES / "inflate", folder / "inflate")
    provisioner = folder / "inflate" / "provisioner.yaml"
    text = provisioner.read_text(encoding="utf-8")
    provisioner.write_text(text.replace("[m5.large, m5.2xlarge]", "[m5.large]"), encoding="utf-8")
    return patient(load_scenario("inflate", folder))


def nothing(_: World) -> None:
    """Leave the world alone."""


def played(
    cluster: TestCluster,
    scenario: Scenario,
    logs: Path,
    *,
    prepare: Happening = nothing,
    during: Happening = nothing,
) -> Harm:
    """Play the burst, in which no pod gets two machines; return what went wrong on purpose."""
    console = Console(file=io.StringIO())
    options = WorldOptions(
        speed=10, keep_logs=logs, kubeconfig=cluster.kubeconfig, bare=cluster.bare
    )
    with World(options, console.print) as world:
        if world.foreign is not None:
            world.foreign.require_room()
        observer = Observer(world.cluster, world.client("ec2"))
        observer.start()
        prepare(world)
        player = Player(world.cluster, observer, 10, console.print)
        try:
            # Here, in the thread that stays: what it starts ends with its thread.
            with ThreadPoolExecutor(1) as threads:
                playing = threads.submit(player.play, scenario)
                during(world)
                results = playing.result()
        finally:
            observer.stop()
        assert [result.failures for result in results] == [(), ()]
        assert launched_in_time(world.client("ec2")) <= len(observer.timeline.pods)
        assert world.children.alive("forwarder")
        return read_harm(world.control)


def launched_in_time(ec2: Any) -> int:
    """Return how many machines were launched while no node could be late yet.

    Where calls of AWS outlast their time-outs, as at a load of fifty on two processors, nodes are
    late, and others are launched for their pods.
    """
    launched = sorted(
        instance["LaunchTime"]
        for page in ec2.get_paginator("describe_instances").paginate()
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    )
    late = launched[0] + LaunchPolicy().initialization_timeout
    return sum(at < late for at in launched)


def kill_forwarder(world: World) -> None:
    """Kill the forwarder as soon as pods are there, and let it come back as its Deployment would.

    Pods are made all at once, and it speaks of those that it has heard of in a tenth of a second.
    """
    until(lambda: world.cluster.items("api/v1/namespaces/default/pods"), "pods are there")
    world.children.stop("forwarder", hard=True)
    world.start_forwarder()


def test_a_forwarder_killed_in_mid_burst_changes_nothing(play: Play) -> None:
    play(during=kill_forwarder)


def test_events_delivered_twice_change_nothing(play: Play) -> None:
    def duplicate(world: World) -> None:
        for kind in KINDS:
            world.control("events/duplicate", **{"detail-type": kind, "count": 1000})

    assert {struck for _, struck in play(prepare=duplicate)} == {*KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_event_changes_nothing(kind: str, play: Play) -> None:
    def lose(world: World) -> None:
        world.control("events/drop", **{"detail-type": kind, "count": 1})

    assert play(prepare=lose) == {("event lost", kind): 1}
