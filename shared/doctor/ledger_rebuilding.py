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
    types = {one.name: one for one in ports.catalog.instance_types()}
    node_of = {node.instance_id: node for node in nodes if node.instance_id}
    slot_with = {slot.instance_id: slot for slot in slots}
    numbers = {(slot.plan_id, slot.group, slot.number) for slot in slots}
    for one in sorted(machines, key=lambda one: one.instance_id):
        if ledger.cluster_of(one.instance_id) == name:
            continue
        lease = ledger.renew(lease, clock.now())
        slot, node = slot_with.get(one.instance_id), node_of.get(one.instance_id)
        if slot is not None:
            # Only one side of the pair is lost: the pair is written again.
            ledger.drop_slot(slot, lease)
        else:
            slot = _slot_of(ports, one, node, types.get(one.offering.instance_type))
            slot = dataclasses.replace(slot, number=_first_free(slot, numbers))
        ledger.fill_slot(lease, slot)
        if node is not None and node.is_initialized:
            # It has joined: all that is left to know is whose it is.
            ledger.drop_slot(slot, lease)


def _slot_of(
    ports: ClusterPorts, one: Instance, node: Node | None, of_type: InstanceType | None
) -> Slot:
    group = one.tags.get(keys.TAG_GROUP, "")
    provisioner = one.tags.get(keys.PROVISIONER_NAME, "")
    place = {
        keys.PROVISIONER_NAME: provisioner,
        keys.ZONE: one.offering.zone,
        keys.CAPACITY_TYPE: one.offering.capacity_type.value,
        keys.INSTANCE_TYPE: one.offering.instance_type,
    }
    return Slot(
        cluster=ports.cluster.name,
        plan_id=one.tags.get(keys.TAG_PLAN, "") or "unknown",
        group=int(group) if group.isdecimal() else 0,
        number=0,
        provisioner=provisioner,
        instance_id=one.instance_id,
        offering=one.offering,
        price_micros_per_hour=_price_of(one, of_type),
        capacity=of_type.capacity if of_type is not None else Resources(),
        allocatable=of_type.allocatable if of_type is not None else Resources(),
        labels={**(node.labels if node is not None else {}), **place},
        node_name=node.name if node is not None else "",
        launched_at=one.launched_at or ports.clock.now(),
    )


def _first_free(slot: Slot, numbers: set[tuple[str, int, int]]) -> int:
    """Return a number that no slot of the group has, and take it."""
    number = 0
    while (slot.plan_id, slot.group, number) in numbers:
        number += 1
    numbers.add((slot.plan_id, slot.group, number))
    return number


def _price_of(one: Instance, of_type: InstanceType | None) -> int:
    """Return what a machine costs, 0 when the catalogue does not know."""
    for way in of_type.offerings if of_type is not None else ():
        if (way.zone, way.capacity_type) == (one.offering.zone, one.offering.capacity_type):
            return way.price_micros_per_hour
    return 0
