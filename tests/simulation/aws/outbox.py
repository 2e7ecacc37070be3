"""The way out of a function: queue, bus and timers of a schedule."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from shared.model.messages.message import (
    MAX_OBJECTS,
    Message,
    MessageKind,
    ObjectRef,
    encode,
    make_message,
)
from shared.ports import TimerKind
from tests.simulation.aws.delivery import Delivery
from tests.simulation.aws.timers import Timers
from tests.simulation.schedule.kernel import Kernel


class Outbox:
    """Implements shared.ports.Outbox."""

    def __init__(self, kernel: Kernel, delivery: Delivery, timers: Timers) -> None:
        self._kernel = kernel
        self._delivery = delivery
        self._timers = timers

    def wake(self, cluster: str, delay: timedelta) -> None:
        text = json.dumps(encode(make_message(MessageKind.RESUME, cluster, self._kernel.now())))
        seconds = min(max(delay.total_seconds(), 0.0), 900.0)
        self._delivery.send(text, float(-(-seconds // 1)))

    def evaluate(self, cluster: str, delay: timedelta = timedelta(0)) -> None:
        text = json.dumps(encode(make_message(MessageKind.EVALUATE, cluster, self._kernel.now())))
        self._delivery.send(text, delay.total_seconds())

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
        self._invoke("provision", make_message(kind, cluster, self._kernel.now()))

    def invoke_sweep(self, cluster: str) -> None:
        self._invoke("sweep", make_message(MessageKind.SWEEP, cluster, self._kernel.now()))

    def start_timer(self, kind: TimerKind, name: str, payload: Mapping[str, Any]) -> bool:
        return self._timers.start(kind.value, name, payload)

    def invoke_bind(self, cluster: str, nodes: Sequence[str]) -> None:
        objects = [ObjectRef(name=node) for node in nodes[:MAX_OBJECTS]]
        self._invoke(
            "bind",
            make_message(MessageKind.NODE_READY, cluster, self._kernel.now(), objects=objects),
        )

    def _invoke(self, function: str, message: Message) -> None:
        self._delivery.messages += 1
        self._kernel.after(0.1, lambda: self._delivery.invoke(function, encode(message)))
