"""Pods that must leave their node: capacity is planned before they are evicted."""

from collections.abc import Container
from datetime import datetime
from typing import Final

from shared.disruption.simulate import as_pending
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.messages.notices import NoticeKind
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace

# AWS's reasons, as annotated on a node that is drained for them.
INTERRUPTIONS: Final = frozenset(NoticeKind) - {NoticeKind.REBALANCE_RECOMMENDATION}


def as_drained(snapshot: ClusterSnapshot, names: Container[str]) -> ClusterSnapshot:
    """Return the snapshot in which these Nodes are being drained because EC2 interrupts them.

    They were still being created when the warning came; bind begins their drain.
    """
    reason = {keys.REMOVAL_REASON: NoticeKind.SPOT_INTERRUPTION.value}
    nodes = tuple(
        replace(node, deletion_at=snapshot.taken_at, annotations={**node.annotations, **reason})
        if node.name in names
        else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def with_interrupted(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot in which pods that must leave their node are pending.

    These are all pods of instances that AWS interrupts, and the pods of other nodes that are being
    deleted whose owner already has a pending pod: under a PodDisruptionBudget a drain evicts a few
    pods at a time, and without those that follow, each round would launch a small instance. A drain
    that has evicted no pod yet launches nothing, because its budget may never allow an eviction.

    Only pods that a controller recreates count; a terminating pod already has its successor, except
    a pod of a StatefulSet, whose successor is created once it has ended.
    """
    deleted = {node.name: node for node in snapshot.nodes if node.is_ours and node.deletion_at}
    waiting = {pod.owner.uid for pod in snapshot.pending if pod.owner and pod.is_provisionable}
    moving = tuple(
        pod
        for pod in snapshot.bound
        if pod.node_name in deleted
        and pod.keeps_its_node
        and pod.owner is not None
        and (_is_interrupted(deleted[pod.node_name]) or _follows(pod, waiting, snapshot.taken_at))
    )
    if not moving:
        return snapshot
    uids = {pod.uid for pod in moving}
    pending = sorted((*snapshot.pending, *map(as_pending, moving)), key=lambda entry: entry.key)
    return replace(
        snapshot,
        pending=tuple(pending),
        bound=tuple(pod for pod in snapshot.bound if pod.uid not in uids),
    )


def _is_interrupted(node: Node) -> bool:
    return node.annotations.get(keys.REMOVAL_REASON) in INTERRUPTIONS


def _follows(pod: Pod, waiting: Container[str], now: datetime) -> bool:
    """Return whether a pod of the same owner is pending, and this one may be evicted after it."""
    return (
        not pod.blocking_annotation_at(now) and pod.owner is not None and pod.owner.uid in waiting
    )
