"""Whether an evaluation could find a node to change."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from shared.disruption.drift import reports_drift
from shared.disruption.expiration import forced_removal_in, time_to_expiration
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner, owner_among


def needs_evaluation(
    nodes: Iterable[Node], owners: Mapping[str, Provisioner], now: datetime, *, drift: bool = False
) -> bool:
    """Return whether a Dovetail node is due, or may be consolidated or have drifted.

    This runs each minute for every cluster, so it only uses objects that were read anyway.

    Args:
        owners: Provisioners by name.
        drift: Whether drift is acted on for Provisioners that do not say.
    """
    return any(
        _needs_evaluation(node, owner, now, drift=drift)
        for node in nodes
        if node.is_ours and node.deletion_at is None and (owner := owner_among(node, owners))
    )


def _needs_evaluation(node: Node, owner: Provisioner, now: datetime, *, drift: bool) -> bool:
    if owner.paused:
        return False
    left = replacement_due_in(node, owner, now)
    due = left is not None and left <= timedelta(0)
    marks = {
        Trigger.REBALANCE: keys.REBALANCE_RECOMMENDED,
        Trigger.SCHEDULED_CHANGE: keys.CHANGE_SCHEDULED,
    }
    marked = any(
        key in node.annotations and owner.acts_on(trigger) for trigger, key in marks.items()
    )
    return due or owner.consolidation or marked or reports_drift(owner, otherwise=drift)


def replacement_due_in(node: Node, owner: Provisioner, now: datetime) -> timedelta | None:
    """Return the time until a node's replacement begins: zero or less for now, None for never.

    A node that expires by force is replaced ahead of that; once it has expired, it is removed by
    force.
    """
    left, forced = time_to_expiration(node, owner, now), forced_removal_in(node, owner, now)
    if left is None or (forced is not None and forced <= timedelta(0)):
        return None
    return left - owner.replacement_lead_time
