"""Whether a node is older than its Provisioner allows."""

from datetime import datetime, timedelta

from shared.model.kubernetes.nodes import Node


def expires_in(node: Node, ttl: timedelta | None, now: datetime) -> timedelta | None:
    """Return how long the node may still live: zero or less when expired, None for ever."""
    if ttl is None or node.created_at is None:
        return None
    return node.created_at + ttl - now
