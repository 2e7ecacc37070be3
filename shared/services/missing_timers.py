"""Timers that should run and do not: started again."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.emptiness import empty_since, is_empty
from shared.model.launch import Slot
from shared.model.nodes import Node
from shared.model.pods import Pod
from shared.model.provisioner import Provisioner
from shared.ports import ClusterPorts, TimerKind
from shared.services.emptying import Emptying
from shared.services.timers import (
    payload,
    start_expiration,
    start_registration,
    start_termination,
    timer_name,
)

# A drain steps every few seconds: one that was not heard of for this long has ended by accident.
_SILENT: Final = timedelta(minutes=2)


def start_missing_timers(
    ports: ClusterPorts,
    nodes: Sequence[Node],
    slots: Sequence[Slot],
    owners: Mapping[str, Provisioner],
    bound: Sequence[Pod],
    *,
    registration: timedelta,
) -> int:
    """Start what is missing for the nodes of ours; return how many timers that were."""
    running = ports.ledger.timers(ports.cluster.name)
    empty = _empty_nodes(nodes, slots, bound)
    missing = 0
    for node in nodes:
        if not node.is_ours:
            continue
        if node.deletion_at is not None:
            missing += _termination(ports, node, running)
        elif not (node.is_initialized or node.has_joined):
            missing += _registration(ports, node, running, registration)
        elif (owner := owners.get(node.provisioner)) is not None:
            missing += _expiration(ports, node, running, owner)
            if node.name in empty:
                missing += _emptiness(ports, node, running, owner)
    return missing


def _registration(
    ports: ClusterPorts,
    node: Node,
    running: Mapping[tuple[str, str], datetime],
    patience: timedelta,
) -> int:
    last, now = running.get((node.uid, TimerKind.REGISTRATION)), ports.clock.now()
    if last is not None and not _overdue(last, node.created_at, patience, now):
        return 0
    start_registration(ports, node, patience, now, anew=last is not None)
    return 1


def _expiration(
    ports: ClusterPorts,
    node: Node,
    running: Mapping[tuple[str, str], datetime],
    owner: Provisioner,
) -> int:
    last, now = running.get((node.uid, TimerKind.EXPIRATION)), ports.clock.now()
    ttl = owner.ttl_until_expired
    if ttl is None or owner.paused or owner.shadow or ports.brakes.holds:
        return 0
    if last is not None and not _overdue(last, node.created_at, ttl, now):
        return 0
    start_expiration(ports, node, ttl, now, anew=last is not None)
    return 1


def _emptiness(
    ports: ClusterPorts,
    node: Node,
    running: Mapping[tuple[str, str], datetime],
    owner: Provisioner,
) -> int:
    last, now = running.get((node.uid, TimerKind.EMPTINESS)), ports.clock.now()
    ttl = owner.ttl_after_empty
    if ttl is None or owner.paused or owner.shadow or ports.brakes.holds:
        return 0
    if last is not None and not _overdue(last, empty_since(node), ttl, now):
        return 0
    # One that ended by accident keeps its name: a new stamp gives the next one another.
    Emptying(ports).begin(node.name, None if last is None else now)
    return 1


def _overdue(last: datetime, since: datetime | None, span: timedelta, now: datetime) -> bool:
    """Return whether a timer neither acted when it was due nor was heard of since."""
    return now - max(last, (since or last) + span) > _SILENT


def _termination(
    ports: ClusterPorts, node: Node, running: Mapping[tuple[str, str], datetime]
) -> int:
    now = ports.clock.now()
    last = running.get((node.uid, TimerKind.TERMINATION))
    if last is not None and now - last < _SILENT:
        return 0
    if last is None:
        start_termination(ports, node, now)
        return 1
    # It ran and fell silent: its name is taken, so it goes on under a new one.
    _resume_termination(ports, node.name, node.uid, node.instance_id)
    ports.ledger.note_timer(ports.cluster.name, node.uid, TimerKind.TERMINATION, now)
    return 1


def end_orphan(ports: ClusterPorts, instance_id: str) -> None:
    """Start the end of a machine that has no Node, unless it is on its way already."""
    now = ports.clock.now()
    uid, kind = instance_id, TimerKind.TERMINATION
    last = ports.ledger.timers(ports.cluster.name).get((uid, kind))
    if last is not None and now - last < _SILENT:
        return
    _resume_termination(ports, "", uid, uid)
    ports.ledger.note_timer(ports.cluster.name, uid, kind, now)


def _resume_termination(ports: ClusterPorts, node: str, uid: str, instance_id: str) -> None:
    """Start a termination that is another one each time.

    Args:
        node: Name, empty when the machine has no Node.
        uid: Of the node, or the instance id where there is none.
    """
    now = ports.clock.now()
    ports.outbox.start_timer(
        TimerKind.TERMINATION,
        timer_name(ports.cluster.name, uid, TimerKind.TERMINATION, now),
        payload(
            ports,
            node,
            uid,
            timedelta(0),
            instance_id=instance_id,
            since=now.isoformat(),
            steps=0,
        ),
    )


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
        and node.is_initialized
        and is_empty(node, pods.get(node.name, ()), promised.get(node.instance_id))
    )
