"""`dovetail break` on a world that runs: each fault strikes, is survived, and is on the board."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from infra.local.demo.scenario import load_scenario, manifests
from infra.local.demo.world import World, WorldOptions
from tests.e2e.conftest import TestCluster

pytestmark = [pytest.mark.e2e, pytest.mark.landing, pytest.mark.timeout(1800)]
INFLATE = "apis/apps/v1/namespaces/default/deployments/inflate"
SPEED = 10


@pytest.fixture
def world(cluster: TestCluster) -> Iterator[World]:
    if cluster.kubeconfig is not None:
        pytest.skip("the API server that is frozen is the embedded one")
    with World(WorldOptions(speed=SPEED), lambda _: None) as running:
        files = ["provisioner.yaml", "deployment.yaml"]
        for document in manifests(load_scenario("inflate"), files, SPEED):
            running.cluster.apply(document)
        yield running


def broken(world: World, *words: str, replicas: int) -> list[str]:
    """Break something, scale to some replicas once it has begun, and return what was said."""
    command = [sys.executable, "-u", "-m", "functions.cli", "break", *words]
    chosen = ["--kubeconfig", str(world.kubeconfig), "--within", "1500"]
    with subprocess.Popen([*command, *chosen], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        world.cluster.merge(INFLATE, {"spec": {"replicas": replicas}})
        lines += process.stdout.read().splitlines()
    assert process.returncode == 0, lines
    return lines


def test_what_is_broken_is_survived_and_on_the_board(world: World) -> None:
    assert "it struck" in " ".join(broken(world, "kill-function", replicas=6))
    broken(world, "api-server", "--seconds", "5", replicas=6)
    lines = broken(world, "spot-warning", "--seconds", "10", replicas=6)
    assert [line.split()[:2] for line in lines[-3:]] == [
        ["kill-function", "survived"],
        ["api-server", "survived"],
        ["spot-warning", "survived"],
    ]
