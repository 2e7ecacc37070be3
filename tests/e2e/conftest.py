"""Which cluster the scenarios run on: the embedded one, or the one that a variable names.

TEST_CLUSTER=kubeconfig TEST_KUBECONFIG=PATH chooses a real API server; KUBECONFIG, which may name
anything at all, is never read. TEST_CLUSTER_BARE=1 says that the server has no scheduler and no
controllers. A server that is not on this machine must be named in TEST_CLUSTER_OK.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from infra.local.api_proxy.target import read_target
from infra.local.demo.external_cluster import require_allowed_kubeconfig
from infra.local.demo.problem import Problem
from infra.local.demo.scenario import Scenario
from tests.once import made_once

PLAIN = ("functions.cli",)
_NEEDS_POLICY = "needs_policy_v1: evicts, or has a PodDisruptionBudget: not on servers before 1.21"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCluster:
    """Where the scenarios run; both None and False for the embedded API server."""

    __test__ = False

    kubeconfig: Path | None = None
    bare: bool = False

    @property
    def arguments(self) -> list[str]:
        """Return them as `dovetail demo` takes them."""
        if self.kubeconfig is None:
            return []
        return ["--kubeconfig", str(self.kubeconfig), *(["--bare"] if self.bare else [])]


def chosen_cluster() -> TestCluster:
    """Read the variables.

    Raises:
        pytest.UsageError: They contradict each other, or the server must not be used.
    """
    kind = os.environ.get("TEST_CLUSTER", "embedded")
    if kind == "embedded":
        return TestCluster()
    path = os.environ.get("TEST_KUBECONFIG", "")
    if kind != "kubeconfig" or not path:
        raise pytest.UsageError(
            f"TEST_CLUSTER={kind}: give `embedded`, or `kubeconfig` with TEST_KUBECONFIG=PATH"
        )
    try:
        require_allowed_kubeconfig(Path(path), os.environ.get("TEST_CLUSTER_OK", ""))
    except Problem as problem:
        raise pytest.UsageError(str(problem)) from problem
    bare = os.environ.get("TEST_CLUSTER_BARE", "") == "1"
    return TestCluster(kubeconfig=Path(path).resolve(), bare=bare)


def serves_policy_v1(path: Path) -> bool:
    """Ask a server whether it has the group version that evictions are written in."""
    target = read_target(path)
    headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
    with urllib3.PoolManager(ssl_context=target.trust, retries=False) as pool:
        try:
            answer = pool.request("GET", f"{target.url}/apis/policy/v1", headers=headers, timeout=5)
        except urllib3.exceptions.HTTPError as error:
            raise pytest.UsageError(f"{target.url} does not answer: start it first") from error
    if answer.status not in {200, 404}:
        raise pytest.UsageError(f"{target.url} answers {answer.status}: mend {path}")
    return answer.status == 200


def patient(scenario: Scenario) -> Scenario:
    """Return the scenario without its promises of time, for tests of what comes of it."""
    steps = tuple(
        replace(
            step,
            within_seconds=1000,
            expects={k: v for k, v in step.expects.items() if k != "removed_after_empty"},
        )
        for step in scenario.steps
    )
    return replace(scenario, steps=steps)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _NEEDS_POLICY)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the chosen server cannot do: it would say nothing about Dovetail."""
    here = [item for item in items if item.get_closest_marker("e2e")]
    cluster = chosen_cluster()
    if not here or cluster.kubeconfig is None or serves_policy_v1(cluster.kubeconfig):
        return
    out = [item for item in here if item.get_closest_marker("needs_policy_v1")]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """How a demo ended.

    Attributes:
        report: As it wrote it, empty if it wrote none.
        output: What it said.
        denied: Roles, and an action that each of them lacked.
        showing: Command lines that show a secret.
    """

    code: int
    report: Mapping[str, Any]
    output: str
    denied: Sequence[Sequence[str]] = ()
    showing: Sequence[str] = ()


def play(folder: Path, cluster: TestCluster, *words: str, program: Sequence[str] = PLAIN) -> None:
    """Run `dovetail demo` as a user does, in a process of its own; leave what came of it."""
    command = [sys.executable, "-m", *program, "demo", "--report", str(folder / "report.json")]
    ended = subprocess.run(
        [*command, "--keep-logs", str(folder / "logs"), *cluster.arguments, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    said = {"code": ended.returncode, "output": ended.stdout + ended.stderr}
    (folder / "ended.json").write_text(json.dumps(said), encoding="utf-8")


def play_enforced(folder: Path, cluster: TestCluster, action: str = "") -> None:
    """Play `inflate` with every function under its own role, without an action if one is given."""
    program = ("tests.e2e.enforced", str(folder / "found.json"), action)
    play(folder, cluster, "--scenario", "inflate", "--speed", "10", program=program)


def played(folder: Path) -> Demo:
    """Return how the demo ended whose files are in a folder."""
    ended, report, found = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        for file in (folder / "ended.json", folder / "report.json", folder / "found.json")
    )
    return Demo(**ended, report=report, **found)


@pytest.fixture(scope="session")
def inflate(cluster: TestCluster, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """How `inflate` ends with what roles lack refused, played once in a run."""
    return played(
        made_once(tmp_path_factory, "inflate", lambda folder: play_enforced(folder, cluster))
    )


@pytest.fixture(scope="session")
def cluster() -> TestCluster:
    return chosen_cluster()
