"""Many Nodes that the API server refuses cost only their machines."""

import threading
import time

from shared.model.ec2.launches import Lease, Slot
from shared.model.errors import ConflictError, PermanentError
from shared.model.kubernetes.nodes import Node
from shared.model.values import replace
from shared.ports import NodeManifest
from shared.runtime.threads import Threads
from tests.builders import provisioner
from tests.unit.nodes.launch.launches import apart
from tests.unit.worlds import NAME, World, instead


def test_the_pods_of_good_nodes_are_bound_where_half_of_all_nodes_are_refused() -> None:
    world = World(provisioner(), *apart(80))
    world.ports = replace(world.ports, executor=Threads())
    lease_row, one_at_a_time = threading.Lock(), threading.Lock()
    create, drop = world.cluster.create_node, world.ledger.drop_slot
    numbers: list[str] = []

    def create_node(manifest: NodeManifest) -> Node:
        with one_at_a_time:
            numbers.append(manifest.name)
            if len(numbers) % 2:
                raise PermanentError("422 metadata.labels: Invalid value")
            return create(manifest)

    def drop_slot(slot: Slot, lease: Lease | None = None) -> None:
        # Two transactions that check the same row cancel each other.
        if not lease_row.acquire(blocking=False):
            raise ConflictError("TransactionConflict")
        try:
            time.sleep(0.001)
            drop(slot, lease)
        finally:
            lease_row.release()

    instead(world.cluster, "create_node", create_node)
    instead(world.ledger, "drop_slot", drop_slot)
    world.provision()
    assert len(world.bound) == 40
    assert len(world.cluster.nodes()) == 40
    left = {slot.instance_id for slot in world.ledger.slots(NAME)}
    assert left <= {node.instance_id for node in world.cluster.nodes()}
    assert len(world.events("NodeRefused")) >= 1
