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
from shared.model.values import replace
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


def start(
    ports: NodePorts, kind: TimerKind, node: Node, since: datetime, wait: timedelta = timedelta(0)
) -> None:
    """Start a timer of a node.

    Args:
        since: When the node became empty or was created, or when its timer is started again.
        wait: The time until its first step.
    """
    state = TimerState(
        cluster=ports.cluster.name,
        node=node.name,
        uid=node.uid,
        since=since.isoformat(),
        wait_seconds=whole_seconds(wait),
    )
    start_execution(ports, kind, state, since)


def start_execution(ports: NodePorts, kind: TimerKind, state: TimerState, since: datetime) -> None:
    """Start a timer with this state, then save its heartbeat.

    A replacement has a heartbeat for each of its nodes, which are saved before and by its steps.

    Args:
        since: As in `timer_name`.
    """
    now = ports.clock.now()
    name = timer_name(state.cluster, state.uid, kind, since)
    ports.outbox.start_timer(kind, name, state.encode())
    if kind != TimerKind.REPLACEMENT:
        save_heartbeat(ports.ledger, state.cluster, state.uid, kind, now)


def continue_as_new(
    ports: NodePorts, kind: TimerKind, state: TimerState, node: Node | None = None
) -> bool:
    """Continue a timer in a new execution; return whether that was started.

    Args:
        state: The state of the new execution, apart from its steps and its name.
        node: The node of a drain. It is annotated with the new name first, so that two executions
            never act at the same time for long. A crash in between leaves a silent drain, which is
            started again.
    """
    now, state = ports.clock.now(), replace(state, steps=0)
    if node is not None:
        state = replace(state, run=timer_name(state.cluster, state.uid, kind, now))
        try:
            ports.cluster.change_node(node, NodeChange(set_annotations={keys.DRAIN_RUN: state.run}))
        except (ConflictError, NotFoundError):
            # Others write to the node, or it is gone: the next step continues.
            return False
    start_execution(ports, kind, state, now)
    return True


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
    start(ports, TimerKind.EXPIRATION, node, now if restart else created_at, wait)


def start_termination(ports: NodePorts, node: Node) -> None:
    """Start the drain of a node that is being deleted."""
    now = ports.clock.now()
    state = _drain(ports, node.name, node.uid, node.instance_id, now)
    since = node.deletion_at or node.created_at or now
    start_execution(ports, TimerKind.TERMINATION, state, since)


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
        start_termination(ports, node)
        return True
    silent = read_at - last
    if silent < max(silent_for, _SILENT):
        return False
    running_drains = sum(1 for _, kind in running() if kind == TimerKind.TERMINATION)
    if running_drains >= _MANY and silent < LONG_SILENT:
        return False
    state = _drain(ports, node.name, node.uid, node.instance_id, node.deletion_at or read_at)
    return continue_as_new(ports, TimerKind.TERMINATION, state, node)


def terminate_orphan(ports: NodePorts, instance_id: str) -> None:
    """Start the termination of an instance without a Node, unless one is running."""
    now, kind = ports.clock.now(), TimerKind.TERMINATION
    last = last_heartbeat(ports.ledger, ports.cluster.name, instance_id, kind)
    if last is not None and now - last < LONG_SILENT:
        return
    state = _drain(ports, "", instance_id, instance_id, now)
    run = timer_name(state.cluster, instance_id, kind, now)
    start_execution(ports, kind, replace(state, run=run), now)


def _drain(
    ports: NodePorts, node_name: str, uid: str, instance_id: str, since: datetime
) -> TimerState:
    """Return the state in which a drain begins.

    Args:
        since: When the first termination of the node or instance began.
    """
    return TimerState(
        cluster=ports.cluster.name,
        node=node_name,
        uid=uid,
        instance_id=instance_id,
        since=since.isoformat(),
        steps=0,
    )
