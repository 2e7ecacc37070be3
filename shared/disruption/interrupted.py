"""Pods of machines that AWS takes: they get a new place before they are asked to leave."""

import dataclasses
from typing import Final

from shared.disruption.simulation import as_pending
from shared.model import labels as keys
from shared.model.snapshot import ClusterSnapshot

# Reasons of AWS, as they stand on a node that is drained for them.
INTERRUPTIONS: Final = frozenset({"spot-interruption", "state-change", "scheduled-change"})


def with_interrupted(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot in which pods of machines that AWS takes wait for capacity.

    Only those that somebody makes anew elsewhere; one that is leaving already has its successor.
    """
    taken = {
        node.name
        for node in snapshot.nodes
        if node.is_ours
        and node.deletion_at is not None
        and node.annotations.get(keys.REMOVAL_REASON) in INTERRUPTIONS
    }
    moving = tuple(
        pod
        for pod in snapshot.bound
        if pod.node_name in taken
        and pod.counts_for_emptiness
        and not pod.is_terminating
        and pod.owner is not None
    )
    if not moving:
        return snapshot
    uids = {one.uid for one in moving}
    pending = sorted((*snapshot.pending, *map(as_pending, moving)), key=lambda one: one.key)
    return dataclasses.replace(
        snapshot,
        pending=tuple(pending),
        bound=tuple(one for one in snapshot.bound if one.uid not in uids),
    )
