"""Child processes start, are heard when they fail, and are ended whatever happens."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.demo.children import Children, undisturbed
from infra.local.demo.problem import Problem
from tests.waiting import until

SLEEP = ["-c", "import time; time.sleep(60)"]


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    made = Children(tmp_path)
    yield made
    made.stop_all()


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_child_is_ended_and_what_it_started_too(children: Children, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    script = (
        "import subprocess, sys, time, pathlib\n"
        f"p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(inner)!r}).write_text(str(p.pid))\n"
        "time.sleep(60)"
    )
    children.begin("outer", ["-c", script])
    until(lambda: inner.exists() and inner.read_text(encoding="utf-8"))
    pids = (children.pid("outer"), int(inner.read_text(encoding="utf-8")))
    children.stop_all()
    assert not children.alive("outer")
    until(lambda: not any(_lives(pid) for pid in pids))


def _lives(pid: int) -> bool:
    """Return whether a process still runs; one that ended and was not waited for does not."""
    if not exists(pid):
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"


def test_a_child_that_ends_at_start_is_heard(children: Children) -> None:
    with pytest.raises(Problem, match=r"^aws ended at start: .*no_such_module.*--keep-logs"):
        children.start("aws", ["no_such_module"])


def test_waiting_returns_how_a_child_ended(children: Children) -> None:
    children.begin("synth", ["-c", "import sys; sys.exit(3)"])
    assert children.wait("synth") == 3
    assert not children.alive("synth")


def test_temporary_files_of_children_are_in_the_worlds_folder(
    children: Children, tmp_path: Path
) -> None:
    children.begin("one", ["-c", "import tempfile; print(tempfile.gettempdir())"])
    assert children.wait("one") == 0
    log = (tmp_path / "one.log").read_text(encoding="utf-8")
    assert Path(log.strip()) == tmp_path / "tmp"


def test_a_killed_child_is_not_alive(children: Children) -> None:
    children.begin("forwarder", SLEEP)
    assert children.alive("forwarder")
    children.stop("forwarder", hard=True)
    assert not children.alive("forwarder")


def test_signals_are_ignored_only_while_the_world_ends() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with undisturbed():
        os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is before
