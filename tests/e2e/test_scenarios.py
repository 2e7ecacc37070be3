"""Scenarios as a user runs them: in a process of their own, judged by exit code and report."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.demo.scenario import EXAMPLES, scenario_names

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def demo(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run `dovetail demo`; return exit code, report and output."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "infra.local.console", "demo", "--report", str(report)]
    ended = subprocess.run(
        [*command, "--keep-logs", str(tmp_path / "logs"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return ended.returncode, document, ended.stdout + ended.stderr


def test_inflate_ends_as_expected(tmp_path: Path) -> None:
    code, report, output = demo(tmp_path, "--scenario", "inflate", "--speed", "10")
    assert code == 0, output
    assert report["pods"] == 10
    assert report["plan_dollars_per_hour"] >= report["lower_bound_dollars_per_hour"] > 0
    assert all(one["gone"] for one in report["nodes"])
    stages = report["seconds_by_stage"]
    assert stages["seen"] <= stages["launch"] <= stages["running"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in scenario_names() if one != "inflate"])
def test_a_scenario_ends_as_expected(name: str, tmp_path: Path) -> None:
    code, report, output = demo(tmp_path, "--scenario", name, "--speed", "10")
    assert code == 0, output
    assert report["passed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", scenario_names())
def test_a_scenario_with_a_falsified_expectation_fails(name: str, tmp_path: Path) -> None:
    """The first step expects one pod or node too many, in little time: the demo must say so."""
    folder = tmp_path / "examples" / name
    shutil.copytree(EXAMPLES / name, folder)
    document = yaml.safe_load((folder / "scenario.yaml").read_text(encoding="utf-8"))
    first = next(one for one in document["steps"] if "pods_running" in one["expect"])
    first["expect"]["pods_running"]["count"] += 1
    first["within_seconds"] = 25
    (folder / "scenario.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    examples = str(tmp_path / "examples")
    code, report, output = demo(
        tmp_path, "--scenario", name, "--speed", "20", "--examples", examples
    )
    assert code == 1, output
    failures = [f["expectation"] for step in report["steps"] for f in step["failures"]]
    assert failures == ["pods_running"]


def test_an_unknown_scenario_is_bad_input(tmp_path: Path) -> None:
    code, _, output = demo(tmp_path, "--scenario", "nothing")
    assert code == 2
    assert "'nothing' does not exist: use one of big" in output
    assert len(output.strip().splitlines()) == 1
