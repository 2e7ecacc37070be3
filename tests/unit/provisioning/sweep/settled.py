"""A cluster in which sweep finds nothing amiss."""

from typing import Any

from shared.model import labels as keys
from shared.model.ec2.launches import Instance
from tests.builders import TAGS, instance, node, pod, provisioner
from tests.unit.worlds import World


def machine(instance_id: str, **tags: str) -> Instance:
    return instance(instance_id, tags={**TAGS, **tags})


def settled(*more: Any, owner: Any = None) -> World:
    """A world where nothing is amiss: one occupied node, its machine running."""
    joined = node(labels={**node().labels, keys.INITIALIZED: "true"})
    world = World(owner or provisioner(), joined, pod("x", node_name="n1"), *more)
    world.cloud.add(machine("i-n1"))
    return world
