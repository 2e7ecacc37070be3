"""Whether a node is older than its Provisioner allows.

Source of expiration by force: https://karpenter.sh/docs/concepts/disruption/#expiration (2026-11).
"""

from datetime import datetime, timedelta

from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner


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
    if left is None or (owner.dialect.expires_by_force and left <= timedelta(0)):
        return None
    return left - owner.replaced_ahead
