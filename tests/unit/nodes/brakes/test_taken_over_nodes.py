"""Ceilings, limits and lifetimes where a kubelet writes what is not so on its own Node."""

from datetime import timedelta

import pytest

from shared.model import labels as keys
from shared.model.brakes import Brakes, Ceiling
from tests.builders import CATALOG, provisioner
from tests.unit.nodes.brakes.test_hold import braked
from tests.unit.nodes.launch.launches import apart
from tests.unit.worlds import MINUTE, World

DOLLAR = 1_000_000
DEAREST = max(CATALOG, key=lambda one: max(way.price_micros_per_hour for way in one.offerings)).name
LIES = {
    "dearer": {keys.INSTANCE_TYPE: DEAREST},
    "unknown": {keys.INSTANCE_TYPE: "x1.none"},
    "cheaper": {keys.CAPACITY_TYPE: "spot"},
    "nobody's": {keys.PROVISIONER_NAME: None},
    "another's": {keys.PROVISIONER_NAME: "other"},
}


def taken_over(lie: dict[str, str | None]) -> World:
    """Two nodes under a ceiling for ten machines, and a kubelet that has just written a lie."""
    world = World(provisioner(), *apart(2))
    braked(world, Brakes(ceiling=Ceiling(max_price_micros_per_hour=DOLLAR)))
    world.provision()
    for node in world.cluster.nodes():
        world.kubelet_joins(node.name)
        world.bind(node.name)
    world.advance(20 * MINUTE)
    world.sweep()
    world.kubelet_writes(world.cluster.nodes()[0].name, lie)
    return world


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_ceiling_counts_what_the_machine_costs_whatever_its_kubelet_says(
    lie: dict[str, str | None],
) -> None:
    world = taken_over(lie)
    world.cluster.add(*apart(12)[2:])
    assert world.provision().nodes_launched == 8
    assert len(world.alive) == 10


def test_a_node_whose_kubelet_removes_its_marks_is_ours_again_after_a_minute() -> None:
    world = taken_over({keys.PROVISIONER_NAME: None})
    name = world.cluster.nodes()[0].name
    world.kubelet_writes(name, {}, {keys.SLOT: None}, ())
    world.advance(timedelta(days=60))
    world.sweep()
    found = world.cluster.node_values[name]
    assert found.is_ours
    assert found.provisioner == "default"
