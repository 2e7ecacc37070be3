"""Which cluster the scenarios run on: the embedded one, or the one that a variable names.

TEST_CLUSTER=kubeconfig TEST_KUBECONFIG=PATH chooses a real API server; KUBECONFIG, which may name
anything at all, is never read. TEST_CLUSTER_BARE=1 says that the server has no scheduler and no
controllers. A server that is not on this machine must be named in TEST_CLUSTER_OK.
"""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3

from infra.local.api_proxy.target import read_target
from infra.local.demo.external_cluster import require_allowed_kubeconfig
from infra.local.demo.problem import Problem
from infra.local.demo.scenario import Scenario

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
        dataclasses.replace(
            step,
            within_seconds=200,
            expects={k: v for k, v in step.expects.items() if k != "removed_after_empty"},
        )
        for step in scenario.steps
    )
    return dataclasses.replace(scenario, steps=steps)


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


@pytest.fixture(scope="session")
def cluster() -> TestCluster:
    return chosen_cluster()
