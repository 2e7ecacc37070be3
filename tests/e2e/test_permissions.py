"""The demo with every function under its own role, and what the role lacks refused."""

import contextlib
import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from infra.local.demo.observer import Observer
from infra.local.demo.play import Player
from infra.local.demo.scenario import load_scenario
from infra.local.demo.world import CLUSTER, REGION, World, WorldOptions
from tests.e2e.conftest import TestCluster, patient

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

LAUNCH_ROLE = f"Dovetail-{CLUSTER}-{REGION}-launch"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a scenario ended: failed expectations, what roles lacked, who shows a secret."""

    failures: tuple[str, ...]
    denied: tuple[tuple[str, str], ...]
    showing: tuple[str, ...]


def enforced(
    cluster: TestCluster,
    logs: Path,
    *,
    prepare: Callable[[World], None] = lambda _: None,
    within_seconds: float | None = None,
) -> Outcome:
    """Play `inflate` while each call is held against the policies of the caller's role."""
    scenario = patient(load_scenario("inflate"))
    if within_seconds is not None:
        steps = tuple(
            dataclasses.replace(step, within_seconds=within_seconds) for step in scenario.steps
        )
        scenario = dataclasses.replace(scenario, steps=steps)
    console = Console(file=io.StringIO())
    options = WorldOptions(
        speed=10, keep_logs=logs, kubeconfig=cluster.kubeconfig, bare=cluster.bare
    )
    with World(options, console.print) as world:
        world.control("permissions/mode", mode="enforce")
        prepare(world)
        observer = Observer(world.cluster, world.client("ec2"))
        observer.start()
        try:
            results = Player(world.cluster, observer, 10, console.print).play(scenario)
        finally:
            observer.stop()
        failures = tuple(name for result in results for name, _ in result.failures)
        rows = world.control("permissions/denied")["denied"]
        showing = tuple(line for line in command_lines() if shows_a_secret(world, line))
    denied = tuple((row["role"], row["action"]) for row in rows)
    return Outcome(failures=failures, denied=denied, showing=showing)


def command_lines() -> list[str]:
    """Return the command lines of all processes, which any user of a machine can read."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        # A process may end meanwhile.
        with contextlib.suppress(OSError):
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return lines


def shows_a_secret(world: World, line: str) -> bool:
    user = json.loads(world.kubeconfig.read_text())["users"][0]["user"]
    return any(secret in line for secret in (user["token"], world.aws.secret))


def take_away(action: str) -> Callable[[World], None]:
    """Return what takes an action out of every statement of the launch role."""

    def falsify(world: World) -> None:
        iam = world.client("iam")
        (name,) = iam.list_role_policies(RoleName=LAUNCH_ROLE)["PolicyNames"]
        found: Any = iam.get_role_policy(RoleName=LAUNCH_ROLE, PolicyName=name)["PolicyDocument"]
        document = json.loads(found) if isinstance(found, str) else found
        for statement in document["Statement"]:
            actions = statement["Action"]
            listed = actions if isinstance(actions, list) else [actions]
            statement["Action"] = [entry for entry in listed if entry != action] or ["none:AtAll"]
        iam.put_role_policy(
            RoleName=LAUNCH_ROLE, PolicyName=name, PolicyDocument=json.dumps(document)
        )

    return falsify


def test_inflate_needs_no_action_that_its_roles_do_not_allow_and_shows_no_secret(
    cluster: TestCluster, tmp_path: Path
) -> None:
    assert enforced(cluster, tmp_path) == Outcome(failures=(), denied=(), showing=())


@pytest.mark.slow
@pytest.mark.parametrize("action", ["ec2:CreateFleet", "eks:DescribeCluster"])
def test_a_policy_without_an_action_that_is_needed_fails_the_demo(
    cluster: TestCluster, tmp_path: Path, action: str
) -> None:
    outcome = enforced(cluster, tmp_path, prepare=take_away(action), within_seconds=15)

    assert "pods_running" in outcome.failures
    assert (LAUNCH_ROLE, action) in outcome.denied
