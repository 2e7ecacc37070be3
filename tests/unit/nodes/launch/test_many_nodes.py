"""Many Nodes are made: when that is broken off, and who makes the rest."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from shared.model.ec2.launches import FleetAnswer
from shared.model.kubernetes.nodes import Node
from shared.ports import NodeManifest
from tests.builders import pod, provisioner
from tests.unit.nodes.launch.launches import apart
from tests.unit.worlds import MINUTE, NAME, World, instead


def test_nodes_are_broken_off_before_the_invocation_ends_and_made_by_the_next() -> None:
    world = World(provisioner(), *apart(90))
    original = world.cluster.create_node

    def create_node(manifest: NodeManifest) -> Node:
        world.advance(timedelta(milliseconds=1200))
        return original(manifest)

    instead(world.cluster, "create_node", create_node)
    world.provision(span=2 * MINUTE)
    assert len(world.cluster.node_values) == 80
    assert world.outbox.wakes
    instead(world.cluster, "create_node", original)
    world.provision()
    assert len(world.cluster.node_values) == 90


@pytest.mark.parametrize(
    ("slowness", "launch_seconds", "before"), [(0, 0, 91), (200, 0, 81), (200, 30, 81)]
)
def test_request_for_another_plan_waits_some_time_for_nodes(
    slowness: int, launch_seconds: int, before: int
) -> None:
    world = World(provisioner(), *apart(90))
    late = pod("late", cpu=1500, host_ports=(("0.0.0.0", "TCP", 80),))
    done: list[str] = []
    original = world.cluster.create_node, world.cloud.create_fleet

    def create_node(manifest: NodeManifest) -> Node:
        if len(world.cluster.node_values) == 2:
            world.cluster.add(late)
            assert world.ledger.acquire(NAME, "another", world.clock.now()) is None
        done.append("node")
        world.advance(timedelta(milliseconds=slowness))
        return original[0](manifest)

    def create_fleet(request: Mapping[str, Any]) -> FleetAnswer:
        done.append("machines")
        world.advance(timedelta(seconds=launch_seconds))
        return original[1](request)

    instead(world.cluster, "create_node", create_node)
    instead(world.cloud, "create_fleet", create_fleet)
    assert world.provision().nodes_launched == 91
    assert done.index("machines", 1) == before
    assert len(world.cluster.node_values) == 91
