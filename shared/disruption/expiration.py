"""Whether a node is older than its Provisioner allows.

A node of a NodePool expires by force at the expireAfter of its launch, or at the present one if
that is higher: where it is lowered, nodes beyond it are replaced within the budgets, and none is
removed at once for that. A NodePool may choose Karpenter's behavior instead: each node keeps the
expireAfter of its launch.

Source of expiration by force: https://karpenter.sh/docs/concepts/disruption/#expiration (2026-11).
"""

import re
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.policy import KarpenterBehavior
from shared.model.provisioner import Provisioner

NEVER: Final = "Never"
_AGE: Final = re.compile(r"\d{1,10}\Z", re.ASCII)


def lifetime_of(node: Node, owner: Provisioner) -> timedelta | None:
    """Return how old a node may become, None for no limit."""
    as_launched = KarpenterBehavior.LIFETIME in owner.as_karpenter
    written = node.annotations.get(keys.EXPIRE_AFTER, "") if as_launched else ""
    return None if written == NEVER else parse_age(written) or owner.ttl_until_expired


def time_to_expiration(node: Node, owner: Provisioner, now: datetime) -> timedelta | None:
    """Return how long the node may still live: zero or less when expired, None for no limit."""
    life = lifetime_of(node, owner)
    return None if life is None or node.created_at is None else node.created_at + life - now


def forced_removal_in(node: Node, owner: Provisioner, now: datetime) -> timedelta | None:
    """Return the time until the node is removed by force, None for never."""
    left, written = (
        time_to_expiration(node, owner, now),
        node.annotations.get(keys.EXPIRE_AFTER, ""),
    )
    if not owner.dialect.expires_by_force or left is None or written == NEVER:
        return None
    life = lifetime_of(node, owner) or timedelta(0)
    return left + max(life, parse_age(written) or life) - life


def is_forced(node: Node, owner: Provisioner, now: datetime) -> bool:
    """Return whether a node has expired by force, or will so soon that its replacement begins."""
    left = forced_removal_in(node, owner, now)
    return left is not None and left <= owner.replacement_lead_time


def ignores_blockers(node: Node, owner: Provisioner, reason: str, now: datetime) -> bool:
    """Return whether a removal begins although pods or budgets block it.

    The drain of a drifted node ends with its termination grace period, and a node may expire by
    force. What blocks a pod then blocks only its eviction.
    """
    if reason == "drift":
        return owner.termination_grace_period is not None
    return reason == "expiration" and is_forced(node, owner, now)


def parse_age(written: str) -> timedelta | None:
    """Parse an age as a Node's annotation has it; None for Never and for what is no age."""
    return timedelta(seconds=int(written)) if _AGE.match(written) else None
