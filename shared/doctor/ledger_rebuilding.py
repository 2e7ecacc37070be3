"""Rows of a lost ledger, written anew from the tags of machines and from Nodes."""

import dataclasses
from collections.abc import Iterable, Sequence

from shared.launching.slots import slot_of_machine
from shared.model.ec2.launches import Instance, Lease, Slot
from shared.model.kubernetes.nodes import Node
from shared.ports import ClusterPorts


def write_anew(
    ports: ClusterPorts,
    lease: Lease,
    machines: Iterable[Instance],
    nodes: Iterable[Node],
    slots: Sequence[Slot],
) -> None:
    """Write rows for machines the ledger does not know.

    Args:
        machines: Those with our tags that run or are about to.
        slots: What the ledger knows.
    """
    ledger, clock, name = ports.ledger, ports.clock, ports.cluster.name
    types = {instance_type.name: instance_type for instance_type in ports.catalog.instance_types()}
    node_of = {node.instance_id: node for node in nodes if node.instance_id}
    slot_with = {slot.instance_id: slot for slot in slots}
    numbers = {(slot.plan_id, slot.group, slot.number) for slot in slots}
    for instance in sorted(machines, key=lambda machine: machine.instance_id):
        if ledger.cluster_of(instance.instance_id) == name:
            continue
        lease = ledger.renew(lease, clock.now())
        slot, node = slot_with.get(instance.instance_id), node_of.get(instance.instance_id)
        if slot is not None:
            # Only one side of the pair is lost: the pair is written again.
            ledger.drop_slot(slot, lease)
        else:
            of_type = types.get(instance.offering.instance_type)
            slot = slot_of_machine(name, instance, node, of_type, clock.now())
            slot = dataclasses.replace(slot, number=_first_free(slot, numbers))
        ledger.fill_slot(lease, slot)
        if node is not None and node.is_initialized:
            # It has joined: all that is left to know is whose it is.
            ledger.drop_slot(slot, lease)


def _first_free(slot: Slot, numbers: set[tuple[str, int, int]]) -> int:
    """Return a number that no slot of the group has, and take it."""
    number = 0
    while (slot.plan_id, slot.group, number) in numbers:
        number += 1
    numbers.add((slot.plan_id, slot.group, number))
    return number
