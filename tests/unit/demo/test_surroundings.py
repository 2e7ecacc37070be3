"""What a user's shell sets does not reach the world, and closed pipes end in silence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from functions.cli.main import main
from infra.local.cluster_simulator.world import Timing
from infra.local.demo.problem import Problem
from infra.local.surroundings import stand_alone
from infra.local.watcher import Watcher

pytestmark = pytest.mark.usefixtures("signals_as_they_were")
ROOT = Path(__file__).parents[3]


def test_profiles_and_files_of_the_user_are_left_out() -> None:
    environment = {"AWS_PROFILE": "nope", "AWS_CONFIG_FILE": "/home/me/.aws/config", "PATH": "/bin"}
    assert stand_alone(environment) == ["unset AWS_PROFILE"]
    assert "AWS_PROFILE" not in environment
    assert environment["AWS_CONFIG_FILE"] == os.devnull
    assert environment["PATH"] == "/bin"
    assert "NO_PROXY" not in environment


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_loopback_uses_no_proxy(name: str) -> None:
    environment = {name: "http://proxy:3128", "no_proxy": "intra"}
    lines = stand_alone(environment)
    assert lines[0] == "export NO_PROXY=intra,127.0.0.1,localhost"
    assert environment["NO_PROXY"] == environment["no_proxy"] == "intra,127.0.0.1,localhost"


def test_reader_that_closes_the_pipe_sees_no_traceback() -> None:
    code = "import sys; from functions.cli.main import main; sys.exit(main(['scenarios']))"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        ended = subprocess.run(
            [sys.executable, "-c", code], stdout=output, stderr=subprocess.PIPE, cwd=ROOT,
            check=False,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_profile_that_does_not_exist_is_named_by_catalog(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")
    assert main(["catalog", "--region", "eu-west-1"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "The config profile (nope) could not be found" in lines[0]


class Children:
    def __init__(self) -> None:
        self.dead = {"forwarder"}
        self.stopped: list[str] = []

    def alive(self, name: str) -> bool:
        return name not in self.dead

    def stop(self, name: str) -> None:
        self.stopped.append(name)


class World:
    def __init__(self, folder: Path) -> None:
        self.children = Children()
        self.started = 0
        self._folder = folder

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def start_forwarder(self) -> None:
        self.started += 1


def test_forwarder_that_ends_is_started_again_but_not_for_ever(tmp_path: Path) -> None:
    world, said, now = World(tmp_path), list[str](), [0.0]
    watcher = Watcher(world, said.append, lambda: now[0])
    for _ in range(5):
        watcher.look()
    assert (world.started, world.children.stopped) == (5, ["forwarder"] * 5)
    assert said[0].startswith("the forwarder ended and is started again")
    with pytest.raises(Problem, match="forwarder ended by itself"):
        watcher.look()
    now[0] = 61.0
    watcher.look()
    assert world.started == 6


def test_server_that_ends_is_the_end(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.children.dead = {"kube"}
    with pytest.raises(Problem, match="kube ended by itself"):
        Watcher(world, print).look()
    assert world.started == 0


def test_leases_bear_a_busy_machine_at_any_speed() -> None:
    assert 4 * Timing(speed=100.0).least_lease_seconds >= 20


def test_exports_replace_no_file_of_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("alias k=kubectl", encoding="utf-8")
    assert main(["up", "--exports", str(mine)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert mine.read_text(encoding="utf-8") == "alias k=kubectl"
