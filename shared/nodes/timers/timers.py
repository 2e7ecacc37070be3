"""Starts timers, each under a name that is used once.

Source: execution names stay taken for 90 days after an execution ends,
https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html (2026-08).
"""

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.expiration import lifetime_of
from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.model.timer_state import TimerState, whole_seconds
from shared.nodes.timers.heartbeats import last_heartbeat, save_heartbeat
from shared.ports import NodeChange, NodePorts, TimerKind

# A drain without a heartbeat for this long has ended by accident or hangs. If many drains run at
# once, each may have to wait longer.
_SILENT: Final = timedelta(seconds=8)
LONG_SILENT: Final = timedelta(minutes=2)
_MANY: Final = 50


def timer_name(cluster: str, uid: str, kind: TimerKind, since: datetime) -> str:
    """Return the execution's name: the same timer for the same reason always has the same name.

    Args:
        uid: The UID of the node, or the instance ID if there is no node.
        since: What distinguishes timers of a node: when it became empty, was created or was
            deleted.
    """
    identity = f"{cluster}/{uid}/{kind.value}/{since.isoformat(timespec='seconds')}"
    return f"{kind.value}-{hashlib.sha256(identity.encode()).hexdigest()[:40]}"


def start_registration(
    ports: NodePorts, node: Node, joins_within: timedelta, now: datetime, *, restart: bool = False
) -> None:
    """Start the timer that terminates an instance that never joins.

    Args:
        joins_within: The time for most instances; bare metal instances have longer.
        restart: Whether the earlier timer has ended by accident: start another that is due now.
    """
    wait = node.registration_timeout(joins_within)
    since, wait = (now, timedelta(0)) if restart else (node.created_at or now, wait)
    _start(ports, TimerKind.REGISTRATION, node, since, wait)
    save_heartbeat(ports.ledger, ports.cluster.name, node.uid, TimerKind.REGISTRATION, now)


def start_expiration(
    ports: NodePorts, node: Node, owner: Provisioner, now: datetime, *, restart: bool = False
) -> None:
    """Start the timer of a node that may expire; it is due when a replacement must be requested.

    Args:
        restart: Whether the earlier timer has ended by accident or waits too long: start another.
    """
    life = lifetime_of(node, owner)
    if life is None:
        return
    created_at = node.created_at or now
    wait = created_at + life - owner.replacement_lead_time - now
    _start(ports, TimerKind.EXPIRATION, node, now if restart else created_at, wait)
    save_heartbeat(ports.ledger, ports.cluster.name, node.uid, TimerKind.EXPIRATION, now)


def start_emptiness(
    ports: NodePorts, node: Node, since: datetime, wait: timedelta, now: datetime
) -> None:
    """Start the timer that removes a node that stays empty."""
    _start(ports, TimerKind.EMPTINESS, node, since, wait)
    save_heartbeat(ports.ledger, ports.cluster.name, node.uid, TimerKind.EMPTINESS, now)


def start_termination(ports: NodePorts, node: Node, now: datetime) -> None:
    """Start the drain of a node that is being deleted."""
    since = node.deletion_at or node.created_at or now
    state = TimerState(
        cluster=ports.cluster.name,
        node=node.name,
        uid=node.uid,
        instance_id=node.instance_id,
        since=now.isoformat(),
        steps=0,
    )
    name = timer_name(ports.cluster.name, node.uid, TimerKind.TERMINATION, since)
    ports.outbox.start_timer(TimerKind.TERMINATION, name, state.encode())
    save_heartbeat(ports.ledger, ports.cluster.name, node.uid, TimerKind.TERMINATION, now)


def ensure_termination(
    ports: NodePorts,
    node: Node,
    last: datetime | None,
    read_at: datetime,
    silent_for: timedelta = timedelta(0),
    *,
    running: Callable[[], Iterable[tuple[str, str]]],
) -> bool:
    """Start the drain of a node that is being deleted if none runs; return whether it was started.

    A drain that fell silent continues under another name, because its own is used already; if the
    first does run, its next step finds the other's name on the node and ends.

    Args:
        last: When its drain last wrote its heartbeat, None if none runs.
        read_at: When that was read.
        silent_for: How long a drain may be silent, if that is longer than usual.
        running: Returns all timers, by node UID and kind; called only if needed.
    """
    if last is None:
        start_termination(ports, node, ports.clock.now())
        return True
    silent = read_at - last
    if silent < max(silent_for, _SILENT):
        return False
    running_drains = sum(1 for _, kind in running() if kind == TimerKind.TERMINATION)
    if running_drains >= _MANY and silent < LONG_SILENT:
        return False
    since = (node.deletion_at or read_at).isoformat()
    return continue_as_new(ports, node, node.instance_id, since=since)


def continue_as_new(ports: NodePorts, node: Node, instance_id: str, *, since: str) -> bool:
    """Continue a drain in a new execution; return whether that was started.

    The node is annotated with the new name first, so that two executions never act at the same time
    for long. A crash in between leaves a silent drain, which is started again.
    """
    now = ports.clock.now()
    run = timer_name(ports.cluster.name, node.uid, TimerKind.TERMINATION, now)
    try:
        ports.cluster.change_node(node, NodeChange(set_annotations={keys.DRAIN_RUN: run}))
    except (ConflictError, NotFoundError):
        # Others write to the node, or it is gone: the next step continues.
        return False
    resume_termination(ports, node.name, node.uid, instance_id, since=since, now=now)
    return True


def resume_termination(
    ports: NodePorts, node_name: str, uid: str, instance_id: str, *, since: str, now: datetime
) -> None:
    """Start a termination under a new name each time.

    Args:
        node_name: The name of the Node, empty if the instance has none.
        uid: The UID of the node, or the instance ID if there is none.
        since: When the first termination began.
        now: Becomes part of its name.
    """
    run = timer_name(ports.cluster.name, uid, TimerKind.TERMINATION, now)
    state = TimerState(
        cluster=ports.cluster.name,
        node=node_name,
        uid=uid,
        instance_id=instance_id,
        since=since,
        steps=0,
        run=run,
    )
    ports.outbox.start_timer(TimerKind.TERMINATION, run, state.encode())
    save_heartbeat(ports.ledger, ports.cluster.name, uid, TimerKind.TERMINATION, now)


def terminate_orphan(ports: NodePorts, instance_id: str) -> None:
    """Start the termination of an instance without a Node, unless one is running."""
    now = ports.clock.now()
    last = last_heartbeat(ports.ledger, ports.cluster.name, instance_id, TimerKind.TERMINATION)
    if last is not None and now - last < LONG_SILENT:
        return
    resume_termination(ports, "", instance_id, instance_id, since=now.isoformat(), now=now)


def _start(ports: NodePorts, kind: TimerKind, node: Node, since: datetime, wait: timedelta) -> None:
    state = TimerState(
        cluster=ports.cluster.name,
        node=node.name,
        uid=node.uid,
        since=since.isoformat(),
        wait_seconds=whole_seconds(wait),
    )
    name = timer_name(ports.cluster.name, node.uid, kind, since)
    ports.outbox.start_timer(kind, name, state.encode())
