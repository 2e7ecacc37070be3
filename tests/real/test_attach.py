"""`dovetail attach` and `dovetail detach` on a real control plane: its API server judges both."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from infra.local.demo.world import World, WorldOptions
from tests.e2e.attaching import attach_and_detach
from tests.real.cluster import Cluster

pytestmark = pytest.mark.timeout(900)


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
