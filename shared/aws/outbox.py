"""Messages to ourselves, timers, and wake-ups of bind."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.errors import code_of, translated
from shared.aws.session import Session
from shared.messages.wake import MAX_OBJECTS, Kind, Message, ObjectRef, encode, wake
from shared.ports import Clock, TimerKind

# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
# sqs-delay-queues.html (2026-08).
_LONGEST_DELAY: Final = timedelta(minutes=15)


class SqsOutbox:
    """Implements shared.ports.Outbox on SQS, Step Functions and Lambda.

    Args:
        session: Of the Region of queue, machines and function.
        queue_url: URL of the wake queue.
        machines: ARN of the state machine of each kind of timer.
        functions: Name or ARN of each function that may be invoked, as `bind`.
        clock: Gives the time that messages carry.
    """

    def __init__(
        self,
        session: Session,
        *,
        queue_url: str,
        machines: Mapping[TimerKind, str],
        functions: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._session = session
        self._queue_url = queue_url
        self._machines = dict(machines)
        self._functions = dict(functions)
        self._clock = clock

    def wake(self, cluster: str, delay: timedelta) -> None:
        """Send a `resume` message to the queue, delivered after `delay` (at most 15 min)."""
        self._send(Kind.RESUME, cluster, delay)

    def look(self, cluster: str, delay: timedelta = timedelta(0)) -> None:
        """Send a message to the queue that plans for a cluster and looks over all its nodes."""
        self._send(Kind.LOOK, cluster, delay)

    def invoke_provision(self, cluster: str, *, look: bool = False, changed: bool = False) -> None:
        """Call provision for one cluster, without waiting for its answer."""
        kind = Kind.LOOK if look else Kind.PROVISIONER_CHANGED if changed else Kind.RESUME
        self._invoke("provision", wake(kind, cluster, self._clock.now()))

    def invoke_sweep(self, cluster: str) -> None:
        """Call sweep for one cluster, without waiting for its answer."""
        self._invoke("sweep", wake(Kind.SWEEP, cluster, self._clock.now()))

    def _send(self, kind: Kind, cluster: str, delay: timedelta) -> None:
        message = wake(kind, cluster, self._clock.now())
        cut = max(min(delay, _LONGEST_DELAY), timedelta(0))
        with translated("sqs SendMessage"):
            self._session.client("sqs").send_message(
                QueueUrl=self._queue_url,
                MessageBody=_text(encode(message)),
                DelaySeconds=math.ceil(cut.total_seconds()),
            )

    def start_timer(self, kind: TimerKind, name: str, payload: Mapping[str, Any]) -> bool:
        """Start an execution; the name is taken once.

        The input carries `started_at` besides: Step Functions answers a second start of the very
        same input as if it were the first.

        Returns:
            False when an execution of that name was started before.
        """
        document = {**payload, "started_at": self._clock.now().isoformat()}
        with translated("states StartExecution"):
            try:
                self._session.client("stepfunctions").start_execution(
                    stateMachineArn=self._machines[kind], name=name, input=_text(document)
                )
            except ClientError as error:
                if code_of(error) != "ExecutionAlreadyExists":
                    raise
                return False
        return True

    def invoke_bind(self, cluster: str, nodes: Sequence[str]) -> None:
        """Wake the bind function for nodes, without waiting for its answer."""
        for start in range(0, len(nodes), MAX_OBJECTS):
            objects = [ObjectRef(name=node) for node in nodes[start : start + MAX_OBJECTS]]
            message = wake(Kind.NODE_READY, cluster, self._clock.now(), objects=objects)
            self._invoke("bind", message)

    def _invoke(self, function: str, message: Message) -> None:
        with translated("lambda Invoke"):
            self._session.client("lambda").invoke(
                FunctionName=self._functions[function],
                InvocationType="Event",
                Payload=_text(encode(message)).encode(),
            )


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))
