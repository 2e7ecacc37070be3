"""Whether a look over all nodes could find any to change by choice."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from shared.disruption.expiration import replaced_in
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner, owner_among


def wants_look(
    nodes: Iterable[Node], owners: Mapping[str, Provisioner], now: datetime, *, drift: bool = False
) -> bool:
    """Return whether a Dovetail node is due, or may be consolidated or have drifted.

    This runs each minute for every cluster, so it only uses objects that were read anyway.

    Args:
        owners: Provisioners by name.
        drift: Whether drift is acted on.
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
    return due or owner.consolidation or drift or keys.REBALANCE_RECOMMENDED in node.annotations
