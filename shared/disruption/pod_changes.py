"""Since when the pods of a node have not changed, for consolidateAfter.

A bound pod shows when it started; of a deleted pod nothing is left. So each evaluation saves a
digest of the pods of each node and compares it with the one before.

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
PodDigests = Mapping[str, tuple[str, str]]


def pod_digests(snapshot: ClusterSnapshot, before: PodDigests) -> dict[str, tuple[str, str]]:
    """Return digests of the pods of nodes whose owners have consolidateAfter, to compare later.

    Args:
        before: What the previous evaluation returned.
    """
    owners = {owner.name: owner for owner in snapshot.provisioners if owner.consolidate_after}
    if not owners:
        return {}
    by_node: dict[str, list[Pod]] = {}
    for pod in snapshot.bound:
        if pod.counts_for_emptiness and not pod.is_terminating:
            by_node.setdefault(pod.node_name, []).append(pod)
    return {
        node.uid: _digest_since(
            node, by_node.get(node.name, []), before.get(node.uid), snapshot.taken_at
        )
        for node in snapshot.nodes
        if node.is_ours and owner_among(node, owners) is not None
    }


def recently_changed(snapshot: ClusterSnapshot, digests: PodDigests) -> frozenset[str]:
    """Return the uids of nodes whose pods changed less than consolidateAfter ago."""
    owners = {owner.name: owner for owner in snapshot.provisioners}
    spans = {
        node.uid: owner.consolidate_after
        for node in snapshot.nodes
        if (owner := owner_among(node, owners)) is not None
    }
    return frozenset(
        uid
        for uid, (_, since) in digests.items()
        if snapshot.taken_at - datetime.fromisoformat(since) < spans.get(uid, timedelta(0))
    )


def _digest_since(
    node: Node, pods: list[Pod], before: tuple[str, str] | None, now: datetime
) -> tuple[str, str]:
    uids = ",".join(sorted(pod.uid for pod in pods))
    # Its initialization starts the wait, as a new pod does.
    text = uids if node.was_initialized else f"starting {uids}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
    if before is None:
        known = [node.created_at, node.ready_changed_at, *(pod.started_at for pod in pods)]
        since = max((at for at in known if at is not None), default=now)
        return digest, since.isoformat()
    return before if before[0] == digest else (digest, now.isoformat())
