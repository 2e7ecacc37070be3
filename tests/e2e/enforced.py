"""`dovetail demo` with every function under its own role, and what the role lacks refused.

python -m tests.e2e.enforced FOUND ACTION demo --scenario inflate

writes to FOUND what roles lacked and which command lines show a secret. If ACTION is not empty, it
is taken out of every statement of the launch role first, and no step gets more than 15 s.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from functions.cli.main import main as dovetail
from infra.local import commands
from infra.local.demo.world import CLUSTER, REGION, World
from shared.model.values import replace

LAUNCH_ROLE = f"Dovetail-{CLUSTER}-{REGION}-launch"
_WITHIN_SECONDS = 15


@contextlib.contextmanager
def _held(found: Path, action: str, world: World) -> Iterator[None]:
    """Hold each call against the policies of the caller's role; write what was found at the end."""
    world.control("permissions/mode", mode="enforce")
    if action:
        _take_away(world, action)
    yield
    rows = world.control("permissions/denied")["denied"]
    denied = [[row["role"], row["action"]] for row in rows]
    showing = [line for line in _command_lines() if _shows_a_secret(world, line)]
    found.write_text(json.dumps({"denied": denied, "showing": showing}), encoding="utf-8")


def _take_away(world: World, action: str) -> None:
    iam = world.client("iam")
    (name,) = iam.list_role_policies(RoleName=LAUNCH_ROLE)["PolicyNames"]
    found: Any = iam.get_role_policy(RoleName=LAUNCH_ROLE, PolicyName=name)["PolicyDocument"]
    document = json.loads(found) if isinstance(found, str) else found
    for statement in document["Statement"]:
        actions = statement["Action"]
        listed = actions if isinstance(actions, list) else [actions]
        statement["Action"] = [entry for entry in listed if entry != action] or ["none:AtAll"]
    iam.put_role_policy(RoleName=LAUNCH_ROLE, PolicyName=name, PolicyDocument=json.dumps(document))


def _command_lines() -> list[str]:
    """Return the command lines of all processes, which any user of a machine can read."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        # A process may end meanwhile.
        with contextlib.suppress(OSError):
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return lines


def _shows_a_secret(world: World, line: str) -> bool:
    user = json.loads(world.kubeconfig.read_text())["users"][0]["user"]
    return any(secret in line for secret in (user["token"], world.aws.secret))


def main(found: str, action: str, *words: str) -> int:
    """Run a command of `dovetail`; return its exit code."""
    plain, held = commands.play_scenario, partial(_held, Path(found), action)

    def play(
        scenario: Any,
        options: Any,
        console: Any,
        machines: Callable[[Any], AbstractContextManager[Any]] = held,
    ) -> Any:
        if action:
            steps = tuple(replace(step, within_seconds=_WITHIN_SECONDS) for step in scenario.steps)
            scenario = replace(scenario, steps=steps)
        return plain(scenario, options, console, machines)

    commands.play_scenario = play
    return dovetail(list(words))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
