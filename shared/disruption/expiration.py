"""Whether a node is older than its Provisioner allows.

A node of a NodePool expires by force at the age that was asked for when it was launched, or at the
present one if that is higher: where the age is lowered, nodes beyond it are replaced within the
budgets, and none is removed at once for that.

Source of expiration by force: https://karpenter.sh/docs/concepts/disruption/#expiration (2026-11).
"""

from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner

NEVER: Final = "Never"
_MOST_DIGITS: Final = 10


def expiry_stamp(owner: Provisioner) -> dict[str, str]:
    """Return the annotations that say when a node launched now expires by force."""
    forced = owner.dialect.expires_by_force
    return {keys.EXPIRE_AFTER: written_age(owner.ttl_until_expired)} if forced else {}


def written_age(age: timedelta | None) -> str:
    """Return an age of expiration as a Node's annotation has it: seconds, or Never for None."""
    return NEVER if age is None else str(int(age.total_seconds()))


def expires_in(node: Node, ttl: timedelta | None, now: datetime) -> timedelta | None:
    """Return how long the node may still live: zero or less when expired, None for ever."""
    if ttl is None or node.created_at is None:
        return None
    return node.created_at + ttl - now


def forced_in(node: Node, owner: Provisioner, now: datetime) -> timedelta | None:
    """Return in how long the node is removed whatever holds it, None for never."""
    ttl, written = owner.ttl_until_expired, node.annotations.get(keys.EXPIRE_AFTER, "")
    if not owner.dialect.expires_by_force or ttl is None or written == NEVER:
        return None
    if written.isascii() and written.isdigit() and len(written) <= _MOST_DIGITS:
        ttl = max(ttl, timedelta(seconds=int(written)))
    return expires_in(node, ttl, now)


def is_forced(node: Node, owner: Provisioner, now: datetime) -> bool:
    """Return whether a node expires by force so soon that its replacement is begun, or has."""
    left = forced_in(node, owner, now)
    return left is not None and left <= owner.replaced_ahead


def replaced_in(node: Node, owner: Provisioner, now: datetime) -> timedelta | None:
    """Return in how long a node's replacement is begun: zero or less for now, None for never.

    One that expires by force is replaced ahead of that; once it has expired, it goes by itself.
    """
    left, forced = expires_in(node, owner.ttl_until_expired, now), forced_in(node, owner, now)
    if left is None or (forced is not None and forced <= timedelta(0)):
        return None
    return left - owner.replaced_ahead
