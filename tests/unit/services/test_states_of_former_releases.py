"""Timers that were started by a former release go on: their states are taken as they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from shared.services.emptying import Emptying
from shared.services.expiring import Expiring
from shared.services.registering import Registering
from shared.services.terminating import Terminating
from tests.builders import node, provisioner
from tests.unit.services.world import World

STATES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "release" / "timer_states.json").read_text()
)


def _step(kind: str, world: World) -> dict[str, Any]:
    state = STATES[kind]
    services = {
        "emptiness": lambda: Emptying(world.ports).step(state),
        "expiration": lambda: Expiring(world.ports).step(state),
        "registration": lambda: Registering(world.ports).step(state),
        "termination": lambda: Terminating(world.ports, None).step(state),
    }
    return services[kind]()


@pytest.mark.parametrize("kind", sorted(STATES))
def test_a_state_of_the_last_release_is_taken(kind: str) -> None:
    state = _step(kind, World(provisioner(), node()))

    assert state["next"] in {"wait", "done"}
    assert (state["cluster"], state["node"], state["uid"]) == ("test", "n1", "n1")


@pytest.mark.parametrize("kind", sorted(STATES))
def test_a_timer_whose_node_is_gone_ends(kind: str) -> None:
    assert _step(kind, World(provisioner()))["next"] == "done"
