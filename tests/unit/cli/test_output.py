"""The standard output of `dovetail`: full, closed, or without the letters it is given."""

import io
import os
import sys
from pathlib import Path

import pytest

from functions.cli.main import main
from infra.local import commands
from infra.local.demo.scenario import EXAMPLES

pytestmark = pytest.mark.usefixtures("signals_as_they_were")


@pytest.mark.parametrize("words", [["scenarios"], ["plan", "--help"], ["replay", "DECISION"]])
def test_a_full_disk_is_told_in_one_line_and_is_no_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    if words[0] == "replay":
        words = ["replay", saved_decision(tmp_path)]
    capsys.readouterr()
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(words) == 2
    told = capsys.readouterr().err
    assert told == (
        "dovetail: standard output: No space left on device: name another file or make room\n"
    )


def test_a_reader_that_has_enough_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert main(["scenarios"]) == 0
    assert capsys.readouterr().err == ""


def test_closed_outputs_are_written_to_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    assert main(["scenarios"]) == 0
    assert main(["demo", "--scenario", "none"]) == 2
    sys.stdout.close()
    sys.stderr.close()


def test_letters_that_a_terminal_lacks_are_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(kept, encoding="ascii"))
    monkeypatch.setattr(commands, "_scenarios", lambda _: sys.stdout.write("3 × m5\n") and 0)
    assert main(["scenarios"]) == 0
    assert kept.getvalue() == b"3 ? m5\n"


def test_an_error_of_another_file_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> int:
        raise FileNotFoundError("x")

    monkeypatch.setattr(commands, "_scenarios", fails)
    with pytest.raises(FileNotFoundError):
        main(["scenarios"])


def saved_decision(folder: Path) -> str:
    """Return the name of a decision that `plan` saved."""
    name = str(folder / "decision.json")
    assert main(["plan", "-f", str(EXAMPLES / "big"), "--zones", "a", "--save", name]) == 0
    return name
