"""What each role asks of AWS, recorded from runs: tests/data/asks.json.

    python -m tests.e2e.asks [SCENARIO ...]

Plays scenarios on the embedded world, invokes each function with an event that it cannot read, and
adds what was asked to the record. The rights of the templates are compared with it by
tests/infra/policies/test_recorded.py. A right that nothing asks for any more is found by removing
the record first.
"""

import functools
import io
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from infra.local.demo.fault_injection import FaultInjection
from infra.local.demo.observer import Observer
from infra.local.demo.play import Player
from infra.local.demo.scenario import load_scenario
from infra.local.demo.world import CLUSTER, REGION, World, WorldOptions
from tests.e2e.conftest import patient

RECORD: Final = Path(__file__).resolve().parents[1] / "data" / "asks.json"
SCENARIOS: Final = (
    "inflate",
    "consolidate",
    "delete-node",
    "expire",
    "interrupt",
    "late-kubelet",
    "node-template",
)
SPEED: Final = 10


def named(role: str) -> str:
    """Return whose role it is: a function, or `launch`, `terminate`, `inside` of a cluster."""
    for beginning in (f"Dovetail-{REGION}-", f"Dovetail-{CLUSTER}-{REGION}-"):
        if role.startswith(beginning):
            return role.removeprefix(beginning).replace("-", "_")
    return ""


def asked_in(world: World) -> dict[str, set[str]]:
    """Return the actions that each role has asked for so far."""
    found: dict[str, set[str]] = {}
    for row in world.control("permissions/asked")["asked"]:
        if named(row["role"]):
            found.setdefault(named(row["role"]), set()).add(row["action"])
    return found


def read() -> dict[str, set[str]]:
    """Return the record: actions by role."""
    if not RECORD.exists():
        return {}
    document: Mapping[str, list[str]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return {role: set(actions) for role, actions in document.items()}


def play(name: str) -> dict[str, set[str]]:
    """Return the API calls of a scenario, and those for events that cannot be decoded."""
    console = Console(file=io.StringIO())
    scenario = patient(load_scenario(name))
    with World(WorldOptions(speed=SPEED, settings=scenario.settings), console.print) as world:
        observer = Observer(world.cluster, world.client("ec2"))
        observer.start()
        try:
            server = functools.partial(world.children.pid, "kube")
            faults = FaultInjection(world.control, world.client, server)
            player = Player(world.cluster, observer, SPEED, console.print, faults)
            results = player.play(scenario)
        finally:
            observer.stop()
        _confuse(world)
        for failure, _ in (entry for result in results for entry in result.failures):
            sys.stdout.write(f"{name}: not as expected: {failure}\n")
        return asked_in(world)


def _confuse(world: World) -> None:
    """Invoke each function with an event that it cannot read."""
    client = world.client("lambda")
    names = [function["FunctionName"] for function in client.list_functions()["Functions"]]
    for name in names:
        client.invoke(FunctionName=name, Payload=json.dumps({"detail": {"version": 99}}))


def main(names: Iterable[str]) -> int:
    """Add what the scenarios ask to the record."""
    for name in names:
        record = read()
        for role, actions in play(name).items():
            record.setdefault(role, set()).update(actions)
        document: dict[str, Any] = {role: sorted(record[role]) for role in sorted(record)}
        RECORD.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        sys.stdout.write(f"{name}: {sum(map(len, record.values()))} asks of {len(record)} roles\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or SCENARIOS))
