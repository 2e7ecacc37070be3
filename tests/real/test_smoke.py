"""Scenarios on a real control plane and hollow kubelets, with limits of their own; attaching."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from infra.local.demo.scenario import load_scenario
from infra.local.demo.world import World, WorldOptions
from tests.e2e.attaching import attach_and_detach
from tests.real.build import CACHE
from tests.real.cluster import Cluster
from tests.real.play import HOLLOW, play, with_limits

pytestmark = pytest.mark.timeout(900)

# Seconds of each step as they were measured on 2 cores, 2026-11-22: inflate at a load average of
# 12, statefulset at one of 2 to 7.
MEASURED = {"inflate": (30.0, 65.0), "statefulset": (30.0, 35.0, 20.0, 33.0)}
FACTOR = 4


@pytest.mark.parametrize("name", MEASURED)
def test_pods_run_on_machines_that_joined_by_their_user_data(name: str, program: Path) -> None:
    limits = [FACTOR * seconds for seconds in MEASURED[name]]
    played = play(
        with_limits(load_scenario(name), limits, FACTOR),
        program,
        kubelet=HOLLOW,
        logs=CACHE / "logs" / f"smoke-{name}",
        boot_seconds=5.0,
    )
    assert played.passed, (played.report["steps"], played.problems)
    assert played.report["refused"] == 0


def test_a_cluster_is_attached_by_the_forwarders_heartbeat_and_detached_again(
    program: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Cluster(program) as cluster:
        # The kubelet is the simulated one: a hollow one runs no container either.
        options = WorldOptions(kubeconfig=cluster.kubeconfig(), keep_logs=tmp_path)
        with World(options, Console(file=io.StringIO()).print) as world:
            attach_and_detach(world, monkeypatch, capsys)
