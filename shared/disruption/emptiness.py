"""Whether a node is empty, since when, and what to do about it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod

# Pods wait up to 10 s for kube-scheduler's next try, so a new node has its pods only then.
# Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/scheduler/backend/queue/scheduling_queue.go
# (DefaultPodMaxBackoffDuration, 2026-11-27).
_AT_LEAST: Final = timedelta(seconds=20)


class EmptinessStep(StrEnum):
    """What the emptiness timer does next."""

    FORGET = "forget"  # not empty, or not Dovetail's to remove: remove the stamp
    STAMP = "stamp"  # empty, and no stamp says since when
    WAIT = "wait"  # empty, but not for long enough
    REMOVE = "remove"  # empty for long enough


class EmptinessDecision(Struct, frozen=True, kw_only=True):
    """The step, and for WAIT and STAMP how long until the next check."""

    step: EmptinessStep
    wait: timedelta = timedelta(0)


def is_empty(node: Node, pods: Iterable[Pod], slot: Slot | None) -> bool:
    """Return whether nothing that counts is on the node, promised to it or on its way to it.

    Pods of DaemonSets, static, ended and terminating pods do not count, nor do promises once the
    node has been initialized, whether it is Ready now or not. A node that replaces others waits for
    their pods.
    """
    promised = slot is not None and slot.pods and not node.was_initialized
    if promised or keys.REPLACES in node.annotations:
        return False
    return not any(keeps_node(node, pod) for pod in pods)


def keeps_node(node: Node, pod: Pod) -> bool:
    """Return whether a node with this pod is not empty.

    A terminating pod whose kubelet does not report its end stays until its Node is deleted: then
    the pod garbage collector deletes it. So on a node that is not Ready no terminating pod counts,
    not even one of a StatefulSet, which has no successor before that. Pods that no taint has
    evicted yet count, as they may be running.

    Source: gcOrphaned in
    https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/podgc/gc_controller.go and
    https://kubernetes.io/docs/tasks/run-application/force-delete-stateful-set-pod/ (2026-11-29).
    """
    return pod.keeps_its_node and not (pod.is_terminating and node.ready is not True)


def empty_since(node: Node) -> datetime | None:
    """Return the time written on the node, None when there is none or it cannot be read."""
    text = node.annotations.get(keys.EMPTINESS_TIMESTAMP, "")
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        return None
    return stamp if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC)


def stays_empty(ttl: timedelta) -> timedelta:
    """Return how long a node must be empty before it is removed: the ttl, at least 20 seconds."""
    return max(ttl, _AT_LEAST)


def decide_emptiness(
    node: Node,
    pods: Iterable[Pod],
    slot: Slot | None,
    ttl: timedelta | None,
    now: datetime,
) -> EmptinessDecision:
    """Return what to do about a node that may be empty.

    Args:
        ttl: `ttlSecondsAfterEmpty` of its provisioner, None for never.
    """
    held = keys.first_true_annotation(node.annotations, (keys.DO_NOT_DISRUPT,))
    stays = held or node.deletion_at is not None or not (node.is_ours and node.has_started)
    if ttl is None or stays or not is_empty(node, pods, slot):
        return EmptinessDecision(step=EmptinessStep.FORGET)
    since, span = empty_since(node), stays_empty(ttl)
    if since is None or since > now:
        return EmptinessDecision(step=EmptinessStep.STAMP, wait=span)
    if now < (due := since + span):
        return EmptinessDecision(step=EmptinessStep.WAIT, wait=due - now)
    return EmptinessDecision(step=EmptinessStep.REMOVE)
