"""Starting timers: each under a name that is taken once.

Source: execution names stay taken for 90 days after an execution ends,
https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html (2026-08).
"""

import hashlib
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, InvalidMessageError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.ports import NodeChange, NodePorts, TimerKind

# One execution lives at most a year; a longer wait is cut and chained.
LONGEST_WAIT: Final = timedelta(days=300)
# A drain that was not heard of for so long has ended by accident or hangs. Of many that go at once
# each may have to wait its turn.
_SILENT: Final = timedelta(seconds=8)
LONG_SILENT: Final = timedelta(minutes=2)
_MANY: Final = 50
DONE: Final = "done"
WAIT: Final = "wait"


def timer_name(cluster: str, uid: str, kind: TimerKind, since: datetime) -> str:
    """Return the execution's name: the same timer for the same reason always has the same.

    Args:
        uid: Of the node, or the instance id where there is no node.
        since: What makes it another timer: when it became empty, was created, began to end.
    """
    identity = f"{cluster}/{uid}/{kind.value}/{since.isoformat(timespec='seconds')}"
    return f"{kind.value}-{hashlib.sha256(identity.encode()).hexdigest()[:40]}"


def payload(ports: NodePorts, node: str, uid: str, wait: timedelta, **more: Any) -> dict[str, Any]:
    """Return the input of a timer; `wait` is rounded up to whole seconds and cut to 300 days."""
    return {
        "version": 1,
        "cluster": ports.cluster.name,
        "node": node,
        "uid": uid,
        "next": WAIT,
        "wait_seconds": whole_seconds(wait),
        **more,
    }


def whole_seconds(span: timedelta) -> int:
    """Return a span in whole seconds, rounded up, between 0 and 300 days."""
    return math.ceil(max(min(span, LONGEST_WAIT).total_seconds(), 0))


def again(state: Mapping[str, Any], wait: timedelta) -> dict[str, Any]:
    """Return the state that makes a timer wait and step once more."""
    return {**state, "next": WAIT, "wait_seconds": whole_seconds(wait)}


def done(state: Mapping[str, Any], result: str) -> dict[str, Any]:
    """Return the state that ends a timer; `result` says how, for people."""
    return {**state, "next": DONE, "wait_seconds": 0, "result": result}


def ended(
    ports: NodePorts, state: Mapping[str, Any], kind: TimerKind, result: str
) -> dict[str, Any]:
    """Take the timer's row away and return the state that ends it."""
    ports.ledger.drop_timer(ports.cluster.name, text_of(state, "uid"), kind)
    return done(state, result)


def text_of(state: Mapping[str, Any], name: str) -> str:
    """Return a text field of a timer's state.

    Raises:
        InvalidMessageError: If it is absent or no text.
    """
    value = state.get(name)
    if not isinstance(value, str):
        raise InvalidMessageError(f"{name}: {value!r}: expected a text")
    return value


def start_registration(
    ports: NodePorts, node: Node, limit: timedelta, now: datetime, *, anew: bool = False
) -> None:
    """Start the timer that gives a machine up which never joins.

    Args:
        limit: With most machines; a node of bare metal has longer.
        anew: The one that was started has ended by accident: start another, due now.
    """
    wait = node.joins_within(limit)
    since, wait = (now, timedelta(0)) if anew else (node.created_at or now, wait)
    _start(ports, TimerKind.REGISTRATION, node, since, wait)
    ports.ledger.note_timer(ports.cluster.name, node.uid, TimerKind.REGISTRATION, now)


def start_expiration(
    ports: NodePorts, node: Node, ttl: timedelta, now: datetime, *, anew: bool = False
) -> None:
    """Start the timer that removes a node when it is older than `ttl`.

    Args:
        anew: The one that was started has ended by accident, or sleeps too long: start another.
    """
    born = node.created_at or now
    _start(ports, TimerKind.EXPIRATION, node, now if anew else born, born + ttl - now)
    ports.ledger.note_timer(ports.cluster.name, node.uid, TimerKind.EXPIRATION, now)


def start_emptiness(
    ports: NodePorts, node: Node, since: datetime, wait: timedelta, now: datetime
) -> None:
    """Start the timer that removes a node which stays empty."""
    _start(ports, TimerKind.EMPTINESS, node, since, wait)
    ports.ledger.note_timer(ports.cluster.name, node.uid, TimerKind.EMPTINESS, now)


def start_termination(ports: NodePorts, node: Node, now: datetime) -> None:
    """Start the drain of a node that is being deleted."""
    since = node.deletion_at or node.created_at or now
    ports.outbox.start_timer(
        TimerKind.TERMINATION,
        timer_name(ports.cluster.name, node.uid, TimerKind.TERMINATION, since),
        payload(
            ports,
            node.name,
            node.uid,
            timedelta(0),
            instance_id=node.instance_id,
            since=now.isoformat(),
            steps=0,
        ),
    )
    ports.ledger.note_timer(ports.cluster.name, node.uid, TimerKind.TERMINATION, now)


def keep_termination(
    ports: NodePorts,
    node: Node,
    running: Mapping[tuple[str, str], datetime],
    read_at: datetime,
    limit: timedelta = timedelta(0),
) -> bool:
    """Start the drain of a node that is being deleted if none runs; return whether it was.

    One that ran and fell silent goes on under another name, as its own is taken; if it does live,
    its next step finds the other's name on the node, and it ends.

    Args:
        running: When each timer was last heard of.
        read_at: When that was read.
        limit: For how long silence is of no account, where that is longer than usual.
    """
    last = running.get((node.uid, TimerKind.TERMINATION))
    if last is None:
        start_termination(ports, node, ports.clock.now())
        return True
    going = sum(1 for _, kind in running if kind == TimerKind.TERMINATION)
    if read_at - last < max(limit, _SILENT if going < _MANY else LONG_SILENT):
        return False
    since = (node.deletion_at or read_at).isoformat()
    return go_on_elsewhere(ports, node, node.instance_id, since=since)


def go_on_elsewhere(ports: NodePorts, node: Node, instance_id: str, *, since: str) -> bool:
    """Let a drain go on in a new execution; return whether it does.

    Which one stands on the node first, so that never two of them act for long. Whoever dies in
    between leaves a drain that is silent, and it is begun once more.
    """
    now = ports.clock.now()
    run = timer_name(ports.cluster.name, node.uid, TimerKind.TERMINATION, now)
    try:
        ports.cluster.change_node(node, NodeChange(set_annotations={keys.DRAIN_RUN: run}))
    except (ConflictError, NotFoundError):
        # Somebody writes to it just now: the next look goes on.
        return False
    resume_termination(ports, node.name, node.uid, instance_id, since=since, now=now)
    return True


def resume_termination(
    ports: NodePorts, node: str, uid: str, instance_id: str, *, since: str, now: datetime
) -> None:
    """Start a termination that is another one each time.

    Args:
        node: Name, empty when the machine has no Node.
        uid: Of the node, or the instance id where there is none.
        since: When the first one began.
        now: Gives it its name.
    """
    run = timer_name(ports.cluster.name, uid, TimerKind.TERMINATION, now)
    ports.outbox.start_timer(
        TimerKind.TERMINATION,
        run,
        payload(
            ports,
            node,
            uid,
            timedelta(0),
            instance_id=instance_id,
            since=since,
            steps=0,
            run=run,
        ),
    )
    ports.ledger.note_timer(ports.cluster.name, uid, TimerKind.TERMINATION, now)


def terminate_orphan(ports: NodePorts, instance_id: str) -> None:
    """Start the termination of a machine without a Node of ours, unless it is under way."""
    now = ports.clock.now()
    uid, kind = instance_id, TimerKind.TERMINATION
    last = ports.ledger.timers(ports.cluster.name).get((uid, kind))
    if last is not None and now - last < LONG_SILENT:
        return
    resume_termination(ports, "", uid, uid, since=now.isoformat(), now=now)


def _start(ports: NodePorts, kind: TimerKind, node: Node, since: datetime, wait: timedelta) -> None:
    ports.outbox.start_timer(
        kind,
        timer_name(ports.cluster.name, node.uid, kind, since),
        payload(ports, node.name, node.uid, wait, since=since.isoformat()),
    )
