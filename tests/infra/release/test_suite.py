"""What `make test` prints of a suite, and which suites it leaves out."""

import subprocess
from pathlib import Path

import pytest

from tools import suite

PYTEST = """
........................................................................ [ 98%]
.s                                                                       [100%]
lifecycle cases: 363 of 380, 17 differ for a written reason
74 passed, 51 deselected in 12.34s
"""


def test_of_a_suite_that_passed_counts_are_told_and_what_it_adds() -> None:
    assert suite.told(PYTEST) == (
        ["lifecycle cases: 363 of 380, 17 differ for a written reason"],
        "74 passed, 51 deselected, ",
    )
    assert suite.told("Contracts: 13 kept, 0 broken.\n") == ([], "")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit, whose `origin/main` is unknown."""
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    monkeypatch.setattr(suite, "PASSED", tmp_path / ".build" / "passed")
    for name in ("judge", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    person = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(folder), *person, *words], check=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a")


def test_a_suite_of_which_no_pass_is_known_runs(checkout: Path) -> None:
    assert checkout.exists()
    assert not suite.reason_to_leave_out("judge", ["judge"])


def test_a_suite_that_passed_here_runs_again_when_its_paths_change(checkout: Path) -> None:
    suite.keep("judge", ["judge"])
    (checkout / "other" / "a.py").write_text("1")
    commit(checkout)
    assert suite.reason_to_leave_out("judge", ["judge"]).endswith("(passed here)")
    (checkout / "judge" / "b.py").write_text("1")
    assert not suite.reason_to_leave_out("judge", ["judge"])


def test_a_pass_with_changes_that_no_commit_has_is_not_remembered(checkout: Path) -> None:
    (checkout / "judge" / "a.py").write_text("1")
    suite.keep("judge", ["judge"])
    git(checkout, "checkout", "--quiet", "--", "judge")
    assert not suite.reason_to_leave_out("judge", ["judge"])


def test_what_landed_has_passed(checkout: Path) -> None:
    git(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert suite.reason_to_leave_out("judge", ["judge"]).endswith("(origin/main)")
    (checkout / "judge" / "a.py").write_text("1")
    commit(checkout)
    assert not suite.reason_to_leave_out("judge", ["judge"])
