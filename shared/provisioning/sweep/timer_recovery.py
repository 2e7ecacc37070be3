"""Starts timers that should run and do not."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.emptiness import empty_since, is_empty, stays_empty
from shared.disruption.expiration import lifetime_of
from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner, owner_among
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.timers.heartbeats import last_heartbeats
from shared.nodes.timers.timers import (
    LONG_SILENT,
    ensure_termination,
    start,
    start_expiration,
)
from shared.ports import NodePorts, TimerKind
from shared.provisioning.sweep.node_by_node import NodeByNode

# A drain takes a step every few seconds; its heartbeat as read may be some seconds old.
_PATIENCE: Final = timedelta(seconds=20)
# The steps of an emptiness timer may run twice, so it is restarted sooner.
_LATE: Final = timedelta(seconds=10)


def start_missing_timers(  # noqa: PLR0913 -- three of them by keyword
    ports: NodePorts,
    nodes: Sequence[Node],
    slots: Sequence[Slot],
    owners: Mapping[str, Provisioner],
    bound: Sequence[Pod],
    *,
    node_by_node: NodeByNode,
    registration: timedelta,
    held: bool,
) -> int:
    """Start the missing timers of Dovetail's nodes, drains first; return how many were started.

    Args:
        held: Whether no node may be removed voluntarily.
    """
    running, read_at = last_heartbeats(ports.ledger, ports.cluster.name), ports.clock.now()
    empty = _empty_nodes(nodes, slots, bound)

    def start_missing(node: Node) -> int:
        if node.deletion_at is not None:
            last = running.get((node.uid, TimerKind.TERMINATION))
            return ensure_termination(
                ports, node, last, read_at, _PATIENCE, running=lambda: running
            )
        if not (node.is_open or node.was_initialized):
            return _registration(ports, node, running, registration)
        owner = owner_among(node, owners)
        if owner is None:
            return 0
        acts = not (held or owner.paused or owner.shadow)
        missing = _expiration(ports, node, running, owner) if acts else 0
        if node.name in empty:
            return missing + (_emptiness(ports, node, running, owner) if acts else 0)
        if keys.EMPTINESS_TIMESTAMP in node.annotations:
            # It is in use again: the stamp is removed, and its next emptiness gets its own.
            Emptiness(ports).begin(node.name)
        return missing

    ours = [node for node in nodes if node.is_ours]
    return node_by_node.each(start_missing, sorted(ours, key=lambda node: node.deletion_at is None))


def _registration(
    ports: NodePorts,
    node: Node,
    running: Mapping[tuple[str, str], datetime],
    joins_within: timedelta,
) -> int:
    kind, now = TimerKind.REGISTRATION, ports.clock.now()
    last, timeout = running.get((node.uid, kind)), node.registration_timeout(joins_within)
    if last is None:
        start(ports, kind, node, node.created_at or now, timeout)
    elif _overdue(last, node.created_at, timeout, now):
        start(ports, kind, node, now)
    else:
        return 0
    return 1


def _expiration(
    ports: NodePorts,
    node: Node,
    running: Mapping[tuple[str, str], datetime],
    owner: Provisioner,
) -> int:
    last, now = running.get((node.uid, TimerKind.EXPIRATION)), ports.clock.now()
    ttl = lifetime_of(node, owner)
    if ttl is None:
        return 0
    if last is not None and not _overdue(last, node.created_at, ttl, now):
        return 0
    start_expiration(ports, node, owner, now, restart=last is not None)
    return 1


def _emptiness(
    ports: NodePorts,
    node: Node,
    running: Mapping[tuple[str, str], datetime],
    owner: Provisioner,
) -> int:
    last, now = running.get((node.uid, TimerKind.EMPTINESS)), ports.clock.now()
    ttl = owner.ttl_after_empty
    if ttl is None:
        return 0
    since = empty_since(node)
    if last is not None and not _overdue(last, since, stays_empty(ttl), now, late=_LATE):
        return 0
    Emptiness(ports).begin(node.name)
    return 1


def _overdue(
    last: datetime,
    since: datetime | None,
    span: timedelta,
    now: datetime,
    *,
    late: timedelta = LONG_SILENT,
) -> bool:
    """Return whether a timer did not act when it was due and has no heartbeat since."""
    return now - max(last, (since or last) + span) > late


def _empty_nodes(
    nodes: Sequence[Node], slots: Sequence[Slot], bound: Sequence[Pod]
) -> frozenset[str]:
    promised = {slot.instance_id: slot for slot in slots}
    pods: dict[str, list[Pod]] = {}
    for pod in bound:
        pods.setdefault(pod.node_name, []).append(pod)
    return frozenset(
        node.name
        for node in nodes
        if node.is_ours
        and node.has_started
        and is_empty(node, pods.get(node.name, ()), promised.get(node.instance_id))
    )
