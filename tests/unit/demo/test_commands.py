"""Bad input ends in one line that says what and how to mend it."""

from pathlib import Path

import pytest

from functions.cli.main import main
from infra.local import commands

pytestmark = pytest.mark.usefixtures("signals_as_they_were")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1
    begin = f"dovetail {words[0]}: "
    assert lines[0].startswith(begin)
    return lines[0].removeprefix(begin)


def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for path in (tmp_path, tmp_path / "absent" / "report.json"):
        assert said(capsys, "demo", "--report", str(path)) == (
            f"--report {path}: cannot be written: name a file in a folder that exists"
        )
    told = said(capsys, "demo", "--report", "x" * 300)
    assert told.endswith(
        "x: cannot be written: File name too long: name a file in a folder that exists"
    )


def test_a_log_folder_that_cannot_be_made_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    line = said(capsys, "demo", "--keep-logs", str(file / "logs"))
    assert line.startswith(f"--keep-logs {file}/logs: Not a directory")


@pytest.mark.parametrize("command", ["demo", "up"])
def test_bare_server_that_was_not_named_is_refused(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = said(capsys, command, "--bare")
    assert line.startswith("--bare: needs a server")


def test_a_kubeconfig_that_cannot_be_used_is_named_without_the_words_of_a_library(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    absent, broken = tmp_path / "absent", tmp_path / "broken"
    broken.write_text("a: [", encoding="utf-8")
    assert said(capsys, "demo", "--kubeconfig", str(absent)) == (
        f"kubeconfig {absent}: cannot be read: No such file or directory; name a kubeconfig"
    )
    assert said(capsys, "up", "--kubeconfig", str(broken)) == (
        f"kubeconfig {broken}: is not YAML; name a kubeconfig"
    )


def test_a_folder_without_scenarios_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = said(capsys, "demo", "--examples", str(tmp_path))
    assert line.startswith(f"{tmp_path}: holds no scenario")


@pytest.mark.parametrize(
    ("absent", "what"),
    [({"moto"}, "extra local"), ({"aws_cdk", "moto"}, "extras infra and local")],
)
@pytest.mark.parametrize("command", ["demo", "up"])
def test_a_checkout_without_the_packages_of_a_world_is_told_how_to_install_them(
    command: str,
    absent: set[str],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        commands, "find_spec", lambda name: None if name in absent else commands.__spec__
    )
    assert said(capsys, command) == f"not installed: the {what} of this package: make setup"


def test_a_missing_node_js_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    line = said(capsys, "up")
    assert line == "node is missing: install Node.js 20.19 or newer (the CDK needs it)"
    assert list(tmp_path.iterdir()) == []


def test_exports_of_a_world_that_runs_are_neither_overwritten_nor_removed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kubeconfig, exports = tmp_path / "kubeconfig", tmp_path / "world.sh"
    kubeconfig.touch()
    own = commands._write_exports(exports, [f"export KUBECONFIG={kubeconfig}"])
    assert said(capsys, "up", "--exports", str(exports)) == (
        f"--exports {exports}: belongs to a world that runs: end it, name another file, "
        "or remove this one"
    )
    kubeconfig.unlink()
    assert commands._own_file(exports) == exports
    commands._remove_exports(exports, "another's")
    assert exports.read_text(encoding="utf-8") == own
    commands._remove_exports(exports, own)
    assert not exports.exists()


def test_scenarios_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(list(Path("examples").glob("*/expect/scenario.yaml")))
    titles = dict(line.split(None, 1) for line in lines)
    assert titles["inflate"] == "Ten pods of one cpu, then none"
    assert len({line.index(titles[name]) for line, name in zip(lines, titles, strict=True)}) == 1
