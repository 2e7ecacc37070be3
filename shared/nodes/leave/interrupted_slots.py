"""Instances that EC2 interrupts before they are nodes: no pod may be bound to them.

Provision creates Nodes and binds pods while it holds the lease, which the handler of a notice does
not hold. If the handler terminated the instance, it would end under pods that are being bound. So
the handler marks the slot as interrupted, and EC2 ends the instance two minutes later. If the Node
is being created at that moment, provision finds it and calls bind, which drains it: provision must
not delete Nodes.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.messages.notices import NoticeKind
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.events.node_events import event_on
from shared.nodes.leave.node_deletion import remove_node
from shared.ports import NodePorts

# How long pods are evicted after a warning. The instance ends two minutes after it, so pods that
# are left are deleted before, while they can still end in order.
EVICTION_TIME: Final = timedelta(seconds=90)


def mark_interrupted(ports: NodePorts, slot: Slot) -> bool:
    """Mark a slot whose instance EC2 interrupts: it has no allocatable, and its pods are freed.

    The instance still counts towards limits until it has ended.

    Returns:
        False if the slot was changed since it was read: its Node may exist now.
    """
    marked = replace(
        slot, interrupted_at=ports.clock.now(), pods=(), allocatable=Resources(), bound=False
    )
    return ports.ledger.change_slot(marked)


def interrupted_nodes(ports: NodePorts, slots: Iterable[Slot]) -> tuple[str, ...]:
    """Return the names of Nodes that were being created while their slots were marked.

    Those that are being deleted already are left out.

    Args:
        slots: As read under the lease: no Node of a marked slot is created after that.
    """
    marked = {slot.instance_id for slot in slots if slot.interrupted_at is not None}
    if not marked:
        return ()
    return tuple(
        node.name
        for node in ports.cluster.nodes()
        if node.instance_id in marked and node.is_ours and node.deletion_at is None
    )


def drain_interrupted(ports: NodePorts, node: Node, interrupted_at: datetime) -> bool:
    """Drain the Node of an instance that EC2 interrupts, as its slot has recorded.

    Returns:
        False if the Node changed meanwhile: read it again.
    """
    is_spot = node.labels.get(keys.CAPACITY_TYPE) == CapacityType.SPOT
    reason = NoticeKind.SPOT_INTERRUPTION if is_spot else NoticeKind.RESERVATION_INTERRUPTION
    drained = remove_node(ports, node, reason.value, interrupted_at + EVICTION_TIME)
    if drained:
        record_interruption(ports, node, reason)
    return drained


def record_interruption(ports: NodePorts, node: Node, kind: NoticeKind, why: str = "") -> None:
    """Record an Event on a Node whose instance AWS interrupts.

    Args:
        why: What AWS adds to the notice.
    """
    text = f"{kind.value}{f' ({why})' if why else ''}: drained and replaced"
    ports.cluster.record_events([event_on(node, "Interrupted", text)])
