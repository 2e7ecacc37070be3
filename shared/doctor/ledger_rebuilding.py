"""Rows of a lost ledger, written anew from the tags of machines and from Nodes."""

import dataclasses
from collections.abc import Iterable, Sequence

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import Instance, Lease, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.resources import Resources
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
            slot = _slot_of(ports, instance, node, types.get(instance.offering.instance_type))
            slot = dataclasses.replace(slot, number=_first_free(slot, numbers))
        ledger.fill_slot(lease, slot)
        if node is not None and node.is_initialized:
            # It has joined: all that is left to know is whose it is.
            ledger.drop_slot(slot, lease)


def _slot_of(
    ports: ClusterPorts, instance: Instance, node: Node | None, of_type: InstanceType | None
) -> Slot:
    group = instance.tags.get(keys.TAG_GROUP, "")
    provisioner = instance.tags.get(keys.PROVISIONER_NAME, "")
    of_pool = keys.TAG_NODE_POOL in instance.tags
    place = {
        keys.NODE_POOL if of_pool else keys.PROVISIONER_NAME: provisioner,
        keys.ZONE: instance.offering.zone,
        keys.CAPACITY_TYPE: instance.offering.capacity_type.value,
        keys.INSTANCE_TYPE: instance.offering.instance_type,
    }
    return Slot(
        cluster=ports.cluster.name,
        plan_id=instance.tags.get(keys.TAG_PLAN, "") or "unknown",
        group=int(group) if group.isdecimal() else 0,
        number=0,
        provisioner=provisioner,
        instance_id=instance.instance_id,
        offering=instance.offering,
        price_micros_per_hour=_price_of(instance, of_type),
        capacity=of_type.capacity if of_type is not None else Resources(),
        allocatable=of_type.allocatable if of_type is not None else Resources(),
        labels={**(node.labels if node is not None else {}), **place},
        node_name=node.name if node is not None else "",
        launched_at=instance.launched_at or ports.clock.now(),
    )


def _first_free(slot: Slot, numbers: set[tuple[str, int, int]]) -> int:
    """Return a number that no slot of the group has, and take it."""
    number = 0
    while (slot.plan_id, slot.group, number) in numbers:
        number += 1
    numbers.add((slot.plan_id, slot.group, number))
    return number


def _price_of(instance: Instance, of_type: InstanceType | None) -> int:
    """Return what a machine costs, 0 when the catalogue does not know."""
    for way in of_type.offerings if of_type is not None else ():
        if (way.zone, way.capacity_type) == (
            instance.offering.zone,
            instance.offering.capacity_type,
        ):
            return way.price_micros_per_hour
    return 0
