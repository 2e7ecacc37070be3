"""Whether a look over all nodes could find any to change by choice, and which go by force."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from shared.disruption.drift import is_judged
from shared.disruption.expiration import NEVER, expires_in, life_of, read_age
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner, owner_among


def wants_look(
    nodes: Iterable[Node], owners: Mapping[str, Provisioner], now: datetime, *, drift: bool = False
) -> bool:
    """Return whether a Dovetail node is due, or may be consolidated or have drifted.

    This runs each minute for every cluster, so it only uses objects that were read anyway.

    Args:
        owners: Provisioners by name.
        drift: Whether drift is acted on for Provisioners that do not say.
    """
    return any(
        _wants(node, owner, now, drift=drift)
        for node in nodes
        if node.is_ours and node.deletion_at is None and (owner := owner_among(node, owners))
    )


def _wants(node: Node, owner: Provisioner, now: datetime, *, drift: bool) -> bool:
    if owner.paused:
        return False
    left = replaced_in(node, owner, now)
    due = left is not None and left <= timedelta(0)
    marks = {
        Trigger.REBALANCE: keys.REBALANCE_RECOMMENDED,
        Trigger.SCHEDULED_CHANGE: keys.CHANGE_SCHEDULED,
    }
    marked = any(
        key in node.annotations and owner.acts_on(trigger) for trigger, key in marks.items()
    )
    return due or owner.consolidation or marked or is_judged(owner, otherwise=drift)


def replaced_in(node: Node, owner: Provisioner, now: datetime) -> timedelta | None:
    """Return in how long a node's replacement is begun: zero or less for now, None for never.

    One that expires by force is replaced ahead of that; once it has expired, it goes by itself.
    """
    left, forced = expires_in(node, owner, now), forced_in(node, owner, now)
    if left is None or (forced is not None and forced <= timedelta(0)):
        return None
    return left - owner.replaced_ahead


def forced_in(node: Node, owner: Provisioner, now: datetime) -> timedelta | None:
    """Return in how long the node is removed whatever holds it, None for never."""
    left, written = expires_in(node, owner, now), node.annotations.get(keys.EXPIRE_AFTER, "")
    if not owner.dialect.expires_by_force or left is None or written == NEVER:
        return None
    life = life_of(node, owner) or timedelta(0)
    return left + max(life, read_age(written) or life) - life


def is_forced(node: Node, owner: Provisioner, now: datetime) -> bool:
    """Return whether a node expires by force so soon that its replacement is begun, or has."""
    left = forced_in(node, owner, now)
    return left is not None and left <= owner.replaced_ahead


def ignores_holds(node: Node, owner: Provisioner, reason: str, now: datetime) -> bool:
    """Return whether a removal begins though pods or budgets hold the node.

    A node that has drifted has an end by its grace period, and one may expire by force. What holds
    a pod then holds its eviction.
    """
    if reason == "drift":
        return owner.termination_grace_period is not None
    return reason == "expiration" and is_forced(node, owner, now)
