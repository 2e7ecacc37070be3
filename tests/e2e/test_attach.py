"""`dovetail attach` and `dovetail detach` on the whole embedded world."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from functions.cli.main import main
from infra.local.demo.world import CLUSTER, World, WorldOptions
from tests.e2e.attaching import attach_and_detach

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

_SPEED = 10


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    options = WorldOptions(speed=_SPEED, keep_logs=tmp_path)
    with World(options, Console(file=io.StringIO()).print) as running:
        yield running


def test_a_cluster_is_attached_by_the_forwarders_heartbeat_and_detached_again(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attach_and_detach(world, monkeypatch, capsys)


def test_a_kubeconfig_of_another_cluster_is_refused(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    for name, value in world.aws_environment.items():
        monkeypatch.setenv(name, value)
    other = tmp_path / "other"
    text = world.kubeconfig.read_text(encoding="utf-8")
    other.write_text(text.replace("127.0.0.1", "127.0.0.2"), encoding="utf-8")
    assert main(["attach", CLUSTER, "--kubeconfig", str(other), "--image", "a/b:1"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(
        f"dovetail attach: kubeconfig {other}: its context reaches https://127.0"
    )
    assert told.count("\n") == 1
