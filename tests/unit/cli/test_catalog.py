"""`dovetail catalog`: a Region's catalogue goes to a file or to standard output."""

from pathlib import Path

import pytest

from functions.cli import catalog
from functions.cli.catalog_runtime import MadeCatalog
from shared.instance_types.catalog import embedded_text, load_catalog
from tests.unit.cli.running import run_mounted

EMBEDDED = MadeCatalog(text=embedded_text(), region="us-east-1", deployed=False)


def run(make: object, *words: str) -> int:
    return run_mounted(lambda commands: catalog.mount_catalog(commands, make), "catalog", *words)  # type: ignore[arg-type]


def test_a_file_is_written_that_plan_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def make(region: str) -> MadeCatalog:
        asked.append(region)
        return MadeCatalog(text=embedded_text(), region="us-east-1", deployed=bool(region))

    target = tmp_path / "types.json"
    assert run(make, "--region", "eu-west-1", "--output", str(target)) == 0
    assert run(make) == 0

    said = capsys.readouterr()
    assert asked == ["eu-west-1", ""]
    assert target.read_text(encoding="utf-8") == said.out == embedded_text()
    assert said.err.count("instance types in us-east-1") == 2
    assert said.err.count("as the settings of Dovetail in us-east-1 say") == 1
    assert said.err.count("no settings of Dovetail in us-east-1 can be read") == 1
    assert load_catalog(said.out).region == "us-east-1"


def test_a_full_disk_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    full = "/dev/full: No space left on device; expected a file to write to"
    assert run(lambda _: EMBEDDED, "--output", "/dev/full") == 2
    assert capsys.readouterr().err == f"dovetail catalog: {full}\n"


def test_a_file_that_cannot_be_written_is_refused_before_aws_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(_: str) -> MadeCatalog:
        raise AssertionError

    nowhere = str(tmp_path / "nowhere" / "types.json")
    assert run(never, "--output", nowhere) == 2
    assert capsys.readouterr().err == (
        f"dovetail catalog: --output {nowhere}: cannot be written: "
        "name a file in a folder that exists\n"
    )
