"""The walk-through, done as written: its commands, and what it shows of their output."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Shown, shown

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

LOOKING = re.compile(r"^(aws|dovetail doctor|kubectl (get|describe))\b")
# Words that differ from run to run: ids, addresses, plans, dates, ages, sizes.
VARYING = re.compile(
    r"i-[0-9a-f]{17}|ip-\d|\d{8}t\d{6}|\d{4}-\d\d-\d\d|\d\d:\d\d|^\d+[smh](\d+s)?$|^\d{4,}$"
)
WAIT_SECONDS = 90.0


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a second terminal, with `dovetail up` running in a first one."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    output = tmp_path / "up.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "functions.cli", "up", "--speed", "5"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=file,
            stderr=file,
        )
    try:
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"KUBECACHEDIR": str(tmp_path), "PATH": programs}
        yield {**os.environ, **own, **exports(process, output)}
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(30)
    assert code == 0, output.read_text(encoding="utf-8")
    assert list(temporary.iterdir()) == []


def exports(process: subprocess.Popen[bytes], output: Path) -> dict[str, str]:
    """Wait until the world is up; return the variables that it tells to export."""
    ends = time.monotonic() + WAIT_SECONDS
    while "Ctrl-C ends it" not in (text := output.read_text(encoding="utf-8")):
        assert process.poll() is None, text
        assert time.monotonic() < ends, text
        time.sleep(0.2)
    return dict(re.findall(r"^  export (\w+)=(.*)$", text, flags=re.MULTILINE))


def missing(expected: Shown, said: str) -> list[str]:
    """Return the shown lines of which no line of the output has all words that do not vary."""
    lines = [set(line.split()) for line in said.splitlines()]
    left = []
    for line in expected.output:
        fixed = {word for word in line.split() if not VARYING.search(word)}
        if line.strip() != "…" and not any(fixed <= words for words in lines):
            left.append(line)
    return left


def follow(expected: Shown, environment: dict[str, str]) -> None:
    """Run a command; one that only looks is run again until it shows what the page shows."""
    ends = time.monotonic() + (WAIT_SECONDS if LOOKING.match(expected.command) else 0.0)
    while True:
        ended = subprocess.run(
            ["bash", "-o", "pipefail", "-c", expected.command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said = ended.stdout + ended.stderr
        left = missing(expected, said)
        if not left or time.monotonic() > ends:
            break
        time.sleep(0.3)
    assert not left, f"{expected.command}\n{said}"
    refused = any("is invalid" in line for line in expected.output)
    assert (ended.returncode != 0) == refused, said


def test_the_walk_through_shows_what_it_says(terminal: dict[str, str]) -> None:
    for tool in ("kubectl", "aws"):
        assert shutil.which(tool), f"{tool} is missing: the walk-through needs it, install it"
    steps = shown(ROOT / "docs" / "walk-through" / "README.md")
    verbs = {
        other_shown.command.split()[1]
        for other_shown in steps
        if other_shown.command.startswith("kubectl")
    }
    assert verbs >= {"apply", "get", "scale", "describe", "label", "cordon", "delete"}
    for step in steps:
        follow(step, terminal)


def test_a_missing_line_is_noticed() -> None:
    step = Shown(command="kubectl get nodes", output=("ip-10-0-0-4 Ready 5s m5.large", "…"))
    assert missing(step, "NAME\nip-10-0-0-9 Ready 18m2s m5.large spot\n") == []
    assert missing(step, "NAME\nip-10-0-0-9 NotReady 18s m5.large\n") == [step.output[0]]
