"""Scenarios as a user runs them: in a process of their own, judged by exit code and report."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.demo.scenario import EXAMPLES, scenario_names
from tests.e2e.conftest import Demo, TestCluster, play, played

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


@pytest.fixture
def demo(cluster: TestCluster, tmp_path: Path) -> Callable[..., Demo]:
    """Runs `dovetail demo` on the chosen cluster."""

    def run(*words: str) -> Demo:
        play(tmp_path, cluster, *words)
        return played(tmp_path)

    return run


def scenarios() -> list[Any]:
    """Return the names of the scenarios, marked with what their servers must have."""
    needs = {
        "delete-node": [pytest.mark.needs_policy_v1],
        "node-pools": [pytest.mark.needs_policy_v1],
    }
    return [pytest.param(name, marks=needs.get(name, [])) for name in scenario_names()]


def test_inflate_ends_as_expected(inflate: Demo) -> None:
    assert inflate.code == 0, inflate.output
    report = inflate.report
    assert report["pods"] == 10
    assert report["plan_dollars_per_hour"] >= report["lower_bound_dollars_per_hour"] > 0
    assert all(node["gone"] for node in report["nodes"])
    stages = report["seconds_by_stage"]
    assert stages["seen"] <= stages["launch"] <= stages["running"]


@pytest.mark.slow
@pytest.mark.parametrize("name", scenarios())
def test_a_scenario_ends_as_expected(name: str, demo: Callable[..., Demo]) -> None:
    ended = demo("--scenario", name, "--speed", "10")
    assert ended.code == 0, ended.output
    assert ended.report["passed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", scenarios())
def test_a_scenario_with_a_falsified_expectation_fails(
    name: str, demo: Callable[..., Demo], tmp_path: Path
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
    ended = demo("--scenario", name, "--speed", "20", "--examples", examples)
    assert ended.code == 1, ended.output
    failures = [f["expectation"] for step in ended.report["steps"] for f in step["failures"]]
    assert failures == ["pods_running"]


def test_an_unknown_scenario_is_bad_input(demo: Callable[..., Demo]) -> None:
    ended = demo("--scenario", "nothing")
    assert ended.code == 2
    assert "'nothing' does not exist: use one of big" in ended.output
    assert len(ended.output.strip().splitlines()) == 1


def test_a_server_on_another_machine_is_bad_input(
    demo: Callable[..., Demo], tmp_path: Path
) -> None:
    """Simulated nodes must never be created in a cluster that is in use."""
    config = tmp_path / "config"
    config.write_text(
        "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],"
        " clusters: [{name: a, cluster: {server: 'https://192.0.2.1'}}], users: [{name: a}]}"
    )
    ended = demo("--kubeconfig", str(config))
    assert ended.code == 2
    assert "set TEST_CLUSTER_OK=https://192.0.2.1 if that is meant" in ended.output
    assert len(ended.output.strip().splitlines()) == 1
