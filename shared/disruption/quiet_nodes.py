"""Since when the pods of a node have not changed, for consolidateAfter.

A pod that was bound says when it started; of one that is gone nothing is left to be read. So each
look writes down a digest of the pods of each node, and compares it with the one before.

Source: https://karpenter.sh/docs/concepts/disruption/#consolidation (2026-11).
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import owner_among
from shared.model.snapshot import ClusterSnapshot

_LENGTH: Final = 12

# By node uid: the digest of its pods, and since when it is the same, as ISO time.
Seen = Mapping[str, tuple[str, str]]


def pods_seen(snapshot: ClusterSnapshot, before: Seen) -> dict[str, tuple[str, str]]:
    """Return what is seen of the nodes of owners with consolidateAfter, to be compared later.

    Args:
        before: What the look before returned.
    """
    owners = {owner.name: owner for owner in snapshot.provisioners if owner.consolidate_after}
    if not owners:
        return {}
    by_node: dict[str, list[Pod]] = {}
    for pod in snapshot.bound:
        if pod.counts_for_emptiness and not pod.is_terminating:
            by_node.setdefault(pod.node_name, []).append(pod)
    return {
        node.uid: _seen(node, by_node.get(node.name, []), before.get(node.uid), snapshot.taken_at)
        for node in snapshot.nodes
        if node.is_ours and owner_among(node, owners) is not None
    }


def restless(snapshot: ClusterSnapshot, seen: Seen) -> frozenset[str]:
    """Return the uids of nodes whose pods changed less than consolidateAfter ago."""
    owners = {owner.name: owner for owner in snapshot.provisioners}
    spans = {
        node.uid: owner.consolidate_after
        for node in snapshot.nodes
        if (owner := owner_among(node, owners)) is not None
    }
    return frozenset(
        uid
        for uid, (_, since) in seen.items()
        if snapshot.taken_at - datetime.fromisoformat(since) < spans.get(uid, timedelta(0))
    )


def _seen(
    node: Node, pods: list[Pod], before: tuple[str, str] | None, now: datetime
) -> tuple[str, str]:
    uids = ",".join(sorted(pod.uid for pod in pods))
    # That it was initialized begins the wait as a pod that comes does.
    text = uids if node.has_joined else f"starting {uids}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
    if before is None:
        known = [node.created_at, node.ready_changed_at, *(pod.started_at for pod in pods)]
        since = max((at for at in known if at is not None), default=now)
        return digest, since.isoformat()
    return before if before[0] == digest else (digest, now.isoformat())
