"""Scenarios as a user runs them: in a process of their own, judged by exit code and report."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.demo.scenario import EXAMPLES, scenario_names
from tests.e2e.conftest import TestCluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


Demo = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def demo(cluster: TestCluster, tmp_path: Path) -> Demo:
    """Runs `dovetail demo` on the chosen cluster; returns exit code, report and output."""

    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        report = tmp_path / "report.json"
        command = [sys.executable, "-m", "functions.cli", "demo", "--report", str(report)]
        ended = subprocess.run(
            [*command, "--keep-logs", str(tmp_path / "logs"), *cluster.arguments, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        document = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        return ended.returncode, document, ended.stdout + ended.stderr

    return run


def scenarios(*, without: str = "") -> list[Any]:
    """Return the names of the scenarios, marked with what their servers must have."""
    needs = {
        "delete-node": [pytest.mark.needs_policy_v1],
        # Schedules know whole minutes, at any speed.
        "node-pools": [pytest.mark.needs_policy_v1, pytest.mark.timeout(700)],
    }
    names = [scenario_name for scenario_name in scenario_names() if scenario_name != without]
    return [pytest.param(name, marks=needs.get(name, [])) for name in names]


def test_inflate_ends_as_expected(demo: Demo) -> None:
    code, report, output = demo("--scenario", "inflate", "--speed", "10")
    assert code == 0, output
    assert report["pods"] == 10
    assert report["plan_dollars_per_hour"] >= report["lower_bound_dollars_per_hour"] > 0
    assert all(node["gone"] for node in report["nodes"])
    stages = report["seconds_by_stage"]
    assert stages["seen"] <= stages["launch"] <= stages["running"]


@pytest.mark.slow
@pytest.mark.parametrize("name", scenarios(without="inflate"))
def test_a_scenario_ends_as_expected(name: str, demo: Demo) -> None:
    code, report, output = demo("--scenario", name, "--speed", "10")
    assert code == 0, output
    assert report["passed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", scenarios())
def test_a_scenario_with_a_falsified_expectation_fails(
    name: str, demo: Demo, tmp_path: Path
) -> None:
    """The first step expects one pod or node too many, in little time: the demo must say so."""
    folder = tmp_path / "examples" / name
    shutil.copytree(EXAMPLES / name, folder)
    document = yaml.safe_load((folder / "expect" / "scenario.yaml").read_text(encoding="utf-8"))
    first = next(step for step in document["steps"] if "pods_running" in step["expect"])
    first["expect"]["pods_running"]["count"] += 1
    first["within_seconds"] = 60
    (folder / "expect" / "scenario.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    examples = str(tmp_path / "examples")
    code, report, output = demo("--scenario", name, "--speed", "20", "--examples", examples)
    assert code == 1, output
    failures = [f["expectation"] for step in report["steps"] for f in step["failures"]]
    assert failures == ["pods_running"]


def test_an_unknown_scenario_is_bad_input(demo: Demo) -> None:
    code, _, output = demo("--scenario", "nothing")
    assert code == 2
    assert "'nothing' does not exist: use one of big" in output
    assert len(output.strip().splitlines()) == 1


def test_a_server_on_another_machine_is_bad_input(demo: Demo, tmp_path: Path) -> None:
    """Simulated nodes must never be created in a cluster that is in use."""
    config = tmp_path / "config"
    config.write_text(
        "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],"
        " clusters: [{name: a, cluster: {server: 'https://192.0.2.1'}}], users: [{name: a}]}"
    )
    code, _, output = demo("--kubeconfig", str(config))
    assert code == 2
    assert "set TEST_CLUSTER_OK=https://192.0.2.1 if that is meant" in output
    assert len(output.strip().splitlines()) == 1
