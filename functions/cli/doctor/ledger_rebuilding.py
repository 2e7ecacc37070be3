"""Rebuilds the rows of a lost ledger from the tags of instances and from Nodes."""

from collections.abc import Iterable, Sequence

from shared.model.ec2.launches import Instance, Lease, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.values import replace
from shared.nodes.launch.slots import slot_of_instance
from shared.ports import ClusterPorts


def rebuild_ledger(
    ports: ClusterPorts,
    lease: Lease,
    instances: Iterable[Instance],
    nodes: Iterable[Node],
    slots: Sequence[Slot],
) -> None:
    """Write rows for instances that the ledger does not know.

    Args:
        instances: Those with Dovetail's tags that run or are about to.
        slots: All that are in the ledger.
    """
    ledger, clock, name = ports.ledger, ports.clock, ports.cluster.name
    types = {instance_type.name: instance_type for instance_type in ports.catalog.instance_types()}
    node_of = {node.instance_id: node for node in nodes if node.instance_id}
    slot_with = {slot.instance_id: slot for slot in slots}
    numbers = {(slot.plan_id, slot.group, slot.number) for slot in slots}
    for instance in sorted(instances, key=lambda instance: instance.instance_id):
        if ledger.cluster_of(instance.instance_id) == name:
            continue
        lease = ledger.renew(lease, clock.now())
        slot, node = slot_with.get(instance.instance_id), node_of.get(instance.instance_id)
        if slot is not None:
            # Only one row of the pair is lost: both are written again.
            ledger.drop_slot(slot, lease)
        else:
            known_type = types.get(instance.offering.instance_type)
            slot = slot_of_instance(name, instance, node, known_type, clock.now())
            slot = replace(slot, number=_first_free(slot, numbers))
        ledger.fill_slot(lease, slot)
        if node is not None and node.is_initialized:
            # It is initialized: the ledger only needs to know which cluster it belongs to.
            ledger.drop_slot(slot, lease)


def _first_free(slot: Slot, numbers: set[tuple[str, int, int]]) -> int:
    """Return the first number that no slot of the group has, and add it to `numbers`."""
    number = 0
    while (slot.plan_id, slot.group, number) in numbers:
        number += 1
    numbers.add((slot.plan_id, slot.group, number))
    return number
