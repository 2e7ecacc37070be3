"""Timers that were started by a former release go on: their states are taken as they are."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.model import labels as keys
from shared.node_lifecycle.emptiness import Emptiness
from shared.node_lifecycle.expiration import Expiration
from shared.node_lifecycle.registration import Registration
from shared.node_lifecycle.replacement import Replacement
from shared.node_lifecycle.termination import Termination
from tests.builders import NOW, instance, node, provisioner
from tests.unit.worlds import World

STATES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "release" / "timer_states.json").read_text()
)

# What the first step finds on a node that still stands: proof that it was taken on that node.
NODES: dict[str, dict[str, Any]] = {
    "emptiness": {"annotations": {keys.EMPTINESS_TIMESTAMP: NOW.isoformat()}},
    "registration": {"ready": False},
    "termination": {"deletion_at": NOW},
}
TAKEN = {
    "emptiness": ("wait", ""),
    "expiration": ("wait", ""),
    "registration": ("done", "never joined"),
    "replacement": ("wait", ""),
    "termination": ("done", "terminated"),
}


def _step(kind: str, world: World) -> dict[str, Any]:
    state = STATES[kind]
    services = {
        "emptiness": lambda: Emptiness(world.ports).step(state),
        "expiration": lambda: Expiration(world.ports).step(state),
        "registration": lambda: Registration(world.ports).step(state),
        "replacement": lambda: Replacement(world.ports).step(state),
        "termination": lambda: Termination(world.ports, None).step(state),
    }
    return services[kind]()


@pytest.mark.parametrize("kind", sorted(STATES))
def test_a_state_of_the_last_release_is_taken(kind: str) -> None:
    """The node it was started for still stands: the step is taken on that node."""
    owner = provisioner(ttl_after_empty=timedelta(seconds=30), ttl_until_expired=timedelta(days=1))
    world = World(owner, node(uid=STATES[kind]["uid"], **NODES.get(kind, {})))
    world.cloud.add(instance())

    state = _step(kind, world)

    assert (state["next"], state.get("result", "")) == TAKEN[kind]
    assert (state["cluster"], state["node"], state["uid"]) == ("test", "n1", "n1")


@pytest.mark.parametrize("kind", sorted(STATES))
def test_a_timer_whose_node_is_gone_ends(kind: str) -> None:
    assert _step(kind, World(provisioner()))["next"] == "done"
