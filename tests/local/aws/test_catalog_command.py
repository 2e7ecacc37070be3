"""`dovetail catalog` against the embedded AWS, and `dovetail plan` with what it wrote."""

from pathlib import Path

import pytest

from functions.cli.main import main
from shared.instance_types.catalog import load_catalog
from tests.local.aws.lab import Lab

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "big"


def test_a_plan_is_made_with_the_catalogue_of_the_region(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in lab.aws.access.environment.items():
        monkeypatch.setenv(name, value)
    target = tmp_path / "types.json"

    assert main(["catalog", "--region", "us-east-1", "--output", str(target)]) == 0
    found = load_catalog(target.read_text(encoding="utf-8"))
    assert found.region == "us-east-1"
    assert len(found.instance_types) > 100
    assert f"{len(found.instance_types)} instance types in us-east-1" in capsys.readouterr().err

    files = [
        word
        for name in ("node-class", "node-pool", "small")
        for word in ("-f", f"{EXAMPLES}/{name}.yaml")
    ]
    assert main(["plan", *files, "--catalog", str(target), "--verbose"]) == 0
    assert "AWS Pricing API" in capsys.readouterr().out
