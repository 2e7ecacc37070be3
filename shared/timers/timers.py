"""Starting timers: each under a name that is taken once.

Source: execution names stay taken for 90 days after an execution ends,
https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html (2026-08).
"""

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.expiration import life_of
from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.model.timer_state import TimerState, whole_seconds
from shared.ports import NodeChange, NodePorts, TimerKind
from shared.timers.heartbeats import note_timer, timer_seen

# A drain without a heartbeat for so long has ended by accident or hangs. Of many drains at once
# each may have to wait its turn.
_SILENT: Final = timedelta(seconds=8)
LONG_SILENT: Final = timedelta(minutes=2)
_MANY: Final = 50


def timer_name(cluster: str, uid: str, kind: TimerKind, since: datetime) -> str:
    """Return the execution's name: the same timer for the same reason always has the same.

    Args:
        uid: Of the node, or the instance id where there is no node.
        since: What makes it another timer: when the node became empty, was created or was deleted.
    """
    identity = f"{cluster}/{uid}/{kind.value}/{since.isoformat(timespec='seconds')}"
    return f"{kind.value}-{hashlib.sha256(identity.encode()).hexdigest()[:40]}"


def start_registration(
    ports: NodePorts, node: Node, limit: timedelta, now: datetime, *, anew: bool = False
) -> None:
    """Start the timer that terminates a machine which never joins.

    Args:
        limit: For most machines; a node of bare metal has longer.
        anew: The timer that was started has ended by accident: start another, due now.
    """
    wait = node.joins_within(limit)
    since, wait = (now, timedelta(0)) if anew else (node.created_at or now, wait)
    _start(ports, TimerKind.REGISTRATION, node, since, wait)
    note_timer(ports.ledger, ports.cluster.name, node.uid, TimerKind.REGISTRATION, now)


def start_expiration(
    ports: NodePorts, node: Node, owner: Provisioner, now: datetime, *, anew: bool = False
) -> None:
    """Start the timer of a node that may expire; it wakes when its replacement is to be asked for.

    Args:
        anew: The timer that was started has ended by accident, or waits too long: start another.
    """
    life = life_of(node, owner)
    if life is None:
        return
    born = node.created_at or now
    wait = born + life - owner.replaced_ahead - now
    _start(ports, TimerKind.EXPIRATION, node, now if anew else born, wait)
    note_timer(ports.ledger, ports.cluster.name, node.uid, TimerKind.EXPIRATION, now)


def start_emptiness(
    ports: NodePorts, node: Node, since: datetime, wait: timedelta, now: datetime
) -> None:
    """Start the timer that removes a node which stays empty."""
    _start(ports, TimerKind.EMPTINESS, node, since, wait)
    note_timer(ports.ledger, ports.cluster.name, node.uid, TimerKind.EMPTINESS, now)


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
    note_timer(ports.ledger, ports.cluster.name, node.uid, TimerKind.TERMINATION, now)


def keep_termination(
    ports: NodePorts,
    node: Node,
    last: datetime | None,
    read_at: datetime,
    limit: timedelta = timedelta(0),
    *,
    running: Callable[[], Iterable[tuple[str, str]]],
) -> bool:
    """Start the drain of a node that is being deleted if none runs; return whether it was.

    A drain that fell silent continues under another name, as its own is taken; if the first does
    run, its next step finds the other's name on the node and ends.

    Args:
        last: When its drain last wrote its heartbeat, None when none runs.
        read_at: When that was read.
        limit: How long a drain may be silent, where that is longer than usual.
        running: Returns all timers, by node uid and kind; asked for when they matter.
    """
    if last is None:
        start_termination(ports, node, ports.clock.now())
        return True
    silent = read_at - last
    if silent < max(limit, _SILENT):
        return False
    going = sum(1 for _, kind in running() if kind == TimerKind.TERMINATION)
    if going >= _MANY and silent < LONG_SILENT:
        return False
    since = (node.deletion_at or read_at).isoformat()
    return continue_as_new(ports, node, node.instance_id, since=since)


def continue_as_new(ports: NodePorts, node: Node, instance_id: str, *, since: str) -> bool:
    """Continue a drain in a new execution; return whether it does.

    The node is annotated with the new name first, so that two executions never act for long. A
    crash in between leaves a silent drain, which is started once more.
    """
    now = ports.clock.now()
    run = timer_name(ports.cluster.name, node.uid, TimerKind.TERMINATION, now)
    try:
        ports.cluster.change_node(node, NodeChange(set_annotations={keys.DRAIN_RUN: run}))
    except (ConflictError, NotFoundError):
        # The node is being written to: the next step continues.
        return False
    resume_termination(ports, node.name, node.uid, instance_id, since=since, now=now)
    return True


def resume_termination(
    ports: NodePorts, node: str, uid: str, instance_id: str, *, since: str, now: datetime
) -> None:
    """Start a termination under a new name each time.

    Args:
        node: Name, empty when the machine has no Node.
        uid: Of the node, or the instance id where there is none.
        since: When the first termination began.
        now: Part of its name.
    """
    run = timer_name(ports.cluster.name, uid, TimerKind.TERMINATION, now)
    state = TimerState(
        cluster=ports.cluster.name,
        node=node,
        uid=uid,
        instance_id=instance_id,
        since=since,
        steps=0,
        run=run,
    )
    ports.outbox.start_timer(TimerKind.TERMINATION, run, state.encode())
    note_timer(ports.ledger, ports.cluster.name, uid, TimerKind.TERMINATION, now)


def terminate_orphan(ports: NodePorts, instance_id: str) -> None:
    """Start the termination of a machine without a Node, unless it is under way."""
    now = ports.clock.now()
    last = timer_seen(ports.ledger, ports.cluster.name, instance_id, TimerKind.TERMINATION)
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
