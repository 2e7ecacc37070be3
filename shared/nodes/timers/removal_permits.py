"""Permits to remove nodes of owners with disruption budgets: each is counted before it is used.

Timers and provision decide at the same time. Each writes the nodes that it will remove into one
note of the cluster before it removes them; the write fails if another one wrote meanwhile.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.allowances import disruptions_left
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason
from shared.model.note import Note
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.nodes.timers.heartbeats import nodes_being_replaced
from shared.ports import NodePorts

_NAME: Final = "removals"
# Longer than an invocation takes from its permit to the deletion, which then counts itself.
_LASTS: Final = timedelta(minutes=2)
_ATTEMPTS: Final = 3


def read_permits(ports: NodePorts) -> Note:
    """Return the note with the permits; read it before the nodes are counted."""
    return ports.ledger.note(ports.cluster.name, _NAME)


def permitted(permits: Note, now: datetime) -> frozenset[str]:
    """Return the UIDs of the nodes with a valid permit: they are about to be removed."""
    return frozenset(
        uid for uid, until in permits.value.items() if now < datetime.fromisoformat(until)
    )


def take_permits(ports: NodePorts, permits: Note, uids: Iterable[str], now: datetime) -> bool:
    """Save that nodes are about to be removed.

    Returns:
        False if another writer changed the permits since they were read: count again.
    """
    until = now + _LASTS
    kept = {uid: permits.value[uid] for uid in permitted(permits, now)}
    value = {**kept, **dict.fromkeys(uids, until.isoformat())}
    return ports.ledger.change_note(ports.cluster.name, replace(permits, value=value), until)


def may_remove(
    ports: NodePorts, owner: Provisioner, node: Node, reason: DisruptionReason | None
) -> bool:
    """Return whether the owner's budgets allow this node's removal now; if so, take a permit."""
    if not owner.budgets:
        return True
    for _ in range(_ATTEMPTS):
        now, permits = ports.clock.now(), read_permits(ports)
        permitted_uids = permitted(permits, now)
        replaced = nodes_being_replaced(ports.ledger, ports.cluster.name, now)
        nodes = ports.cluster.nodes()
        left = disruptions_left(
            owner, nodes, reason, now, permitted_uids | replaced, asking=node.uid
        )
        if left is not None and left <= 0:
            return False
        if take_permits(ports, permits, [node.uid], now):
            return True
    return False
