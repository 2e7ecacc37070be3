"""Permits to remove nodes of owners with disruption budgets: each is counted before it is used.

Timers and provision decide at the same time. Each writes the nodes that it will remove into one
memo of the cluster before it removes them; the write fails if another one wrote meanwhile.
"""

import dataclasses
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.allowances import disruptions_left
from shared.model.kubernetes.nodes import Node
from shared.model.memo import Memo
from shared.model.node_budgets import DisruptionReason
from shared.model.provisioner import Provisioner
from shared.ports import NodePorts
from shared.timers.heartbeats import changes_under_way

_NAME: Final = "removals"
# Longer than an invocation takes from its permit to the deletion, which is then counted itself.
_LASTS: Final = timedelta(minutes=2)
_ATTEMPTS: Final = 3


def read_permits(ports: NodePorts) -> Memo:
    """Return the memo with the permits, to be read before the nodes are counted."""
    return ports.ledger.memo(ports.cluster.name, _NAME)


def permitted(permits: Memo, now: datetime) -> frozenset[str]:
    """Return the uids of the nodes that someone is about to remove."""
    return frozenset(
        uid for uid, until in permits.value.items() if now < datetime.fromisoformat(until)
    )


def take_permits(ports: NodePorts, permits: Memo, uids: Iterable[str], now: datetime) -> bool:
    """Write down that nodes are about to be removed.

    Returns:
        False when someone else wrote since the permits were read: count again.
    """
    until = now + _LASTS
    kept = {uid: permits.value[uid] for uid in permitted(permits, now)}
    value = {**kept, **dict.fromkeys(uids, until.isoformat())}
    return ports.ledger.change_memo(
        ports.cluster.name, dataclasses.replace(permits, value=value), until
    )


def may_remove(
    ports: NodePorts, owner: Provisioner, node: Node, reason: DisruptionReason | None
) -> bool:
    """Return whether the owner's budgets let an empty node go now, and count it if so."""
    if not owner.budgets:
        return True
    for _ in range(_ATTEMPTS):
        now, permits = ports.clock.now(), read_permits(ports)
        taken = permitted(permits, now)
        replaced = changes_under_way(ports.ledger, ports.cluster.name, now)
        nodes = ports.cluster.nodes()
        left = disruptions_left(owner, nodes, reason, now, taken | replaced, asking=node.uid)
        if left is not None and left <= 0:
            return False
        if take_permits(ports, permits, [node.uid], now):
            return True
    return False
