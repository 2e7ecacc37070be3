"""Plays a scenario on a real control plane, with hollow or simulated kubelets."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from infra.local.commands import play_scenario
from infra.local.demo.scenario import Scenario
from infra.local.demo.world import World, WorldOptions
from tests.real.cloud import cloud_controllers
from tests.real.cluster import Cluster
from tests.real.nodes import HollowNodes

# From the state `running` until the kubelet starts, the time of the simulated machines.
BOOT_SECONDS: Final = 20.0
HOLLOW: Final = "hollow"
SIMULATED: Final = "simulated"
REAL: Final = "real"
# The driver of a hollow kubelet registers when a container of this image runs on its node.
_NODE_DRIVER: Final = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "ebs-csi-node", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"app": "ebs-csi-node"}},
        "template": {
            "metadata": {"labels": {"app": "ebs-csi-node"}},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {
                        "name": "ebs-plugin",
                        "image": "public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v1.40.0",
                        "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}},
                    }
                ],
            },
        },
    },
}
KUBELETS: Final = (HOLLOW, SIMULATED)
CLOUDS: Final = (SIMULATED, REAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a scenario.

    Attributes:
        report: As `dovetail demo --report` writes it.
        problems: What the report does not say: machines without a kubelet.
    """

    report: dict[str, Any]
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return whether every expectation held and every machine had a kubelet."""
        return bool(self.report["passed"]) and not self.problems


def play(
    scenario: Scenario,
    program: Path,
    *,
    kubelet: str,
    logs: Path,
    boot_seconds: float,
    cloud: Path | None = None,
) -> Played:
    """Play a scenario on a cluster of its own.

    Args:
        scenario: Its time limits are in force as they are.
        program: With the parts of the cluster.
        kubelet: One of KUBELETS.
        logs: Folder for all logs; emptied before.
        cloud: The AWS cloud controller manager; without, it is simulated.
    """
    hollow = kubelet == HOLLOW
    shutil.rmtree(logs, ignore_errors=True)
    problems: list[str] = []
    beside: list[Callable[[World], AbstractContextManager[None]]] = []
    with Cluster(program) as cluster:
        options = WorldOptions(
            kubeconfig=cluster.kubeconfig(),
            keep_logs=logs / "world",
            kubelets=not hollow,
            cloud=cloud is None,
        )
        if cloud is not None:
            beside.append(partial(cloud_controllers, cloud, cluster, problems))
        if hollow:
            beside.append(partial(_hollow, program, boot_seconds, logs / "nodes", problems))
        report = play_scenario(scenario, options, Console(), partial(_all, beside))
        cluster.keep_logs(logs / "cluster")
    return Played(report=report, problems=tuple(problems))


def with_limits(scenario: Scenario, limits: Iterable[float], slack: float) -> Scenario:
    """Return a scenario with other time limits.

    Args:
        limits: Seconds, a step each.
        slack: Factor of the seconds by which a ttl may be exceeded.
    """
    steps = tuple(
        replace(
            step,
            within_seconds=limit,
            expects={name: _with_slack(expect, slack) for name, expect in step.expects.items()},
        )
        for step, limit in zip(scenario.steps, limits, strict=True)
    )
    return replace(scenario, steps=steps)


def _with_slack(expected: Any, factor: float) -> Any:
    if not isinstance(expected, Mapping) or "slack_seconds" not in expected:
        return expected
    return {**expected, "slack_seconds": expected["slack_seconds"] * factor}


@contextmanager
def _all(
    parts: Iterable[Callable[[World], AbstractContextManager[None]]], world: World
) -> Iterator[None]:
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(part(world))
        yield


@contextmanager
def _hollow(
    program: Path, boot_seconds: float, logs: Path, problems: list[str], world: World
) -> Iterator[None]:
    world.cluster.apply(_NODE_DRIVER)
    nodes = HollowNodes(program, world, boot_seconds=boot_seconds, logs=logs)
    try:
        with nodes:
            yield
    finally:
        problems += nodes.problems
