"""Machines that EC2 takes before they are nodes: no pod may come to run on them.

Provision makes Nodes and binds pods while it holds the lease, which the handler of a notice does
not hold. Terminating the machine there would let it end under pods that are being bound. So the
handler writes into the slot that the machine is taken, and EC2 ends it two minutes later. Where the
Node is being made at that moment, provision finds it and calls bind, which drains it: provision may
delete no Node.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from shared.events.node_events import event_on
from shared.messages.notices import NoticeKind
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.resources import Resources
from shared.node_lifecycle.node_deletion import remove
from shared.ports import NodePorts

# A machine ends two minutes after its warning: from then pods are no longer asked, so that
# they can still end in order.
ASKED_FOR: Final = timedelta(seconds=90)


def mark_interrupted(ports: NodePorts, slot: Slot) -> bool:
    """Write into a slot that EC2 takes its machine: it has no room, and its pods are free.

    Its capacity still counts towards limits until it has ended.

    Returns:
        False when the slot was changed since it was read: its Node may exist now.
    """
    marked = replace(
        slot, interrupted_at=ports.clock.now(), pods=(), allocatable=Resources(), bound=False
    )
    return ports.ledger.change_slot(marked)


def interrupted_nodes(ports: NodePorts, slots: Iterable[Slot]) -> tuple[str, ...]:
    """Return the names of Nodes that were being made while the slots of their machines were marked.

    Those that are being deleted already are left out.

    Args:
        slots: As read under the lease: no Node of a marked one is made any more.
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
    """Drain the Node of a machine that EC2 takes, as its slot says since then.

    Returns:
        False when the Node changed meanwhile: read it again.
    """
    spot = node.labels.get(keys.CAPACITY_TYPE) == CapacityType.SPOT
    reason = NoticeKind.SPOT_INTERRUPTION if spot else NoticeKind.RESERVATION_INTERRUPTION
    drained = remove(ports, node, reason.value, interrupted_at + ASKED_FOR)
    if drained:
        tell_interrupted(ports, node, reason)
    return drained


def tell_interrupted(ports: NodePorts, node: Node, kind: NoticeKind, why: str = "") -> None:
    """Record on a Node that AWS takes its machine.

    Args:
        why: What AWS says besides.
    """
    text = f"{kind.value}{f' ({why})' if why else ''}: drained and replaced"
    ports.cluster.record_events([event_on(node, "Interrupted", text)])
