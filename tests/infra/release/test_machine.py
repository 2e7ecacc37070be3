"""What a machine lacks is said in one line, before anything is installed."""

import shutil
import subprocess

import pytest

from tools import check_machine


@pytest.mark.parametrize(
    ("version", "code", "said"),
    [
        ("v18.20.8", 1, "Node.js v18.20.8 is too old: install Node.js 22 or newer\n"),
        (
            "v20.20.2",
            0,
            "Node.js 20 works, but is past its end of life: install Node.js 22 or newer\n",
        ),
        ("v22.11.0", 0, ""),
    ],
)
def test_an_old_node_is_refused_and_one_past_its_end_of_life_works(
    version: str,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 0, stdout=f"{version}\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")

    assert check_machine.main() == code
    assert capsys.readouterr().out == said
