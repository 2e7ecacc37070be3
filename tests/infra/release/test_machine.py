"""What a machine lacks is said in one line, before anything is installed."""

import shutil
import subprocess

import pytest

from tools import check_machine


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v18.20.8", "Node.js v18.20.8 is too old: install Node.js 20.19 or newer"),
        ("v20.9.0", "Node.js v20.9.0 is too old: install Node.js 20.19 or newer"),
        ("v20.19.0", ""),
        ("v22.0.0", ""),
    ],
)
def test_the_version_of_node_that_is_asked_for_is_the_one_that_works(
    version: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 0, stdout=f"{version}\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")

    assert check_machine.lacking(["node", "npm"]) == said


def test_a_program_that_is_not_asked_for_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    assert check_machine.lacking([]) == ""
    assert check_machine.lacking(["npm"]) == (
        "npm is missing: install Node.js 20.19 or newer (the CDK needs it)"
    )
