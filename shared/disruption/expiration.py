"""Whether a node is older than its Provisioner allows.

Source of expiration by force: https://karpenter.sh/docs/concepts/disruption/#expiration (2026-11).
"""

from datetime import datetime, timedelta
from typing import Final

from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner

# A replacement of a node that expires by force is asked for so long before: nodes join in minutes.
# Where nodes live for less than an hour, it is a quarter of that.
_AHEAD: Final = timedelta(minutes=10)
_SHARE: Final = 4


def expires_in(node: Node, ttl: timedelta | None, now: datetime) -> timedelta | None:
    """Return how long the node may still live: zero or less when expired, None for ever."""
    if ttl is None or node.created_at is None:
        return None
    return node.created_at + ttl - now


def replaced_in(node: Node, owner: Provisioner, now: datetime) -> timedelta | None:
    """Return in how long a node's replacement is begun: zero or less for now, None for never.

    One that expires by force is replaced ahead of that; once it has expired, it goes by itself.
    """
    left = expires_in(node, owner.ttl_until_expired, now)
    if left is None or not owner.dialect.expires_by_force:
        return left
    return left - replaced_ahead(owner) if left > timedelta(0) else None


def replaced_ahead(owner: Provisioner) -> timedelta:
    """Return how long before its expiration by force a node's replacement is begun."""
    return min(_AHEAD, (owner.ttl_until_expired or _AHEAD) / _SHARE)
