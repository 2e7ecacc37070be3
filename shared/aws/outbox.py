"""Messages to the queue, timers, and invocations of functions."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError
from typing_extensions import override

from shared.aws.errors import error_code, translated
from shared.aws.session import Session
from shared.model.messages.message import (
    MAX_OBJECTS,
    Message,
    MessageKind,
    ObjectRef,
    encode,
    make_message,
)
from shared.ports import Clock, Outbox, TimerKind

# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
# sqs-delay-queues.html (2026-08).
_LONGEST_DELAY: Final = timedelta(minutes=15)


class SqsOutbox(Outbox):
    """Implements shared.ports.Outbox on SQS, Step Functions and Lambda.

    Args:
        session: Session in the Region of the queue, state machines and functions.
        queue_url: URL of the wake queue.
        state_machines: ARN of the state machine of each kind of timer.
        functions: Name or ARN of each function that may be invoked, by name, as `bind`.
        clock: Returns the time of messages.
    """

    def __init__(
        self,
        session: Session,
        *,
        queue_url: str,
        state_machines: Mapping[TimerKind, str],
        functions: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._session = session
        self._queue_url = queue_url
        self._state_machines = dict(state_machines)
        self._functions = dict(functions)
        self._clock = clock

    @override
    def wake(self, cluster: str, delay: timedelta) -> None:
        self._send(MessageKind.RESUME, cluster, delay)

    @override
    def evaluate(self, cluster: str, delay: timedelta = timedelta(0)) -> None:
        self._send(MessageKind.EVALUATE, cluster, delay)

    @override
    def invoke_provision(
        self, cluster: str, *, evaluate: bool = False, changed: bool = False
    ) -> None:
        kind = (
            MessageKind.EVALUATE
            if evaluate
            else MessageKind.PROVISIONER_CHANGED
            if changed
            else MessageKind.RESUME
        )
        self._invoke("provision", make_message(kind, cluster, self._clock.now()))

    @override
    def invoke_sweep(self, cluster: str) -> None:
        self._invoke("sweep", make_message(MessageKind.SWEEP, cluster, self._clock.now()))

    def _send(self, kind: MessageKind, cluster: str, delay: timedelta) -> None:
        message = make_message(kind, cluster, self._clock.now())
        cut = max(min(delay, _LONGEST_DELAY), timedelta(0))
        with translated("sqs SendMessage"):
            self._session.client("sqs").send_message(
                QueueUrl=self._queue_url,
                MessageBody=_text(encode(message)),
                DelaySeconds=math.ceil(cut.total_seconds()),
            )

    @override
    def start_timer(self, kind: TimerKind, name: str, payload: Mapping[str, Any]) -> bool:
        """The input also has `started_at`.

        Step Functions answers a second start with the same input as if it were the first.
        """
        document = {**payload, "started_at": self._clock.now().isoformat()}
        with translated("states StartExecution"):
            try:
                self._session.client("stepfunctions").start_execution(
                    stateMachineArn=self._state_machines[kind], name=name, input=_text(document)
                )
            except ClientError as error:
                if error_code(error) != "ExecutionAlreadyExists":
                    raise
                return False
        return True

    @override
    def invoke_bind(self, cluster: str, nodes: Sequence[str]) -> None:
        for start in range(0, len(nodes), MAX_OBJECTS):
            objects = [ObjectRef(name=node) for node in nodes[start : start + MAX_OBJECTS]]
            message = make_message(
                MessageKind.NODE_READY, cluster, self._clock.now(), objects=objects
            )
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
