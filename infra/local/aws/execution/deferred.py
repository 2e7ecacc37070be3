"""Asynchronous invocations: accepted at once, tried up to three times, then a destination.

Lambda waits one minute before the second and two before the third attempt; throttles do not
count and back off from one second to five minutes; an event lives six hours at most.
Source: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
(2026-11-21).
"""

import heapq
import itertools
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from infra.local.aws.background import shielded
from infra.local.aws.execution.environment import Outcome
from infra.local.aws.execution.function import FunctionNotFoundError, read_function
from infra.local.aws.execution.invoker import InvocationResult, Invoker, ThrottledError
from infra.local.aws.execution.recursion import RecursiveLoopError

RETRY_SECONDS = (60.0, 120.0)
_MAX_EVENT_AGE_SECONDS = 21_600
_MAX_THROTTLE_SECONDS = 300.0
SendToArn = Callable[[str, str], None]
"""Sends a body to the queue (or other destination) of an ARN."""


@dataclass(kw_only=True)
class _Deferred:
    name: str
    qualifier: str | None
    payload: bytes
    accepted: float
    traces: tuple[str, ...] = ()
    attempts: int = 0
    throttles: int = 0
    request_id: str = field(default="")


class DeferredInvocations:
    """The queue in front of `Invoker` for InvocationType=Event."""

    def __init__(
        self, invoker: Invoker, *, workers: int, retry_seconds: tuple[float, ...], send: SendToArn
    ) -> None:
        self._invoker = invoker
        self._retry_seconds = retry_seconds
        self._send = send
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, _Deferred]] = []
        self._numbers = itertools.count()
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="deferred")
        self._stopped = False

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="deferred").start()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def clear(self) -> None:
        with self._changed:
            self._waiting.clear()

    def accept(
        self,
        name: str,
        payload: bytes,
        *,
        qualifier: str | None = None,
        traces: tuple[str, ...] = (),
    ) -> None:
        """Queue one event; `traces` are the trace headers that it came with."""
        self._invoker.exists(name, qualifier)
        item = _Deferred(
            name=name,
            qualifier=qualifier,
            payload=payload,
            accepted=time.monotonic(),
            traces=traces,
        )
        self._put(item, 0.0)

    def _put(self, item: _Deferred, delay_seconds: float) -> None:
        with self._changed:
            due = time.monotonic() + delay_seconds
            heapq.heappush(self._waiting, (due, next(self._numbers), item))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._stopped and not self._due():
                    self._changed.wait(self._pause())
                if self._stopped:
                    return
                _, _, item = heapq.heappop(self._waiting)
            self._executor.submit(shielded(self._attempt), item)

    def _due(self) -> bool:
        return bool(self._waiting) and self._waiting[0][0] <= time.monotonic()

    def _pause(self) -> float | None:
        return max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else None

    def _attempt(self, item: _Deferred) -> None:
        try:
            function = read_function(
                self._invoker.account_id, self._invoker.region, item.name, item.qualifier
            )
            config = _event_config(function)
            if time.monotonic() - item.accepted > config["MaximumEventAgeInSeconds"]:
                self._give_up(item, function, config, None, "EventAgeExceeded")
                return
            result = self._invoker.invoke(
                item.name, item.payload, qualifier=item.qualifier, traces=item.traces
            )
        except FunctionNotFoundError:
            return  # deleted meanwhile: its queue went with it
        except RecursiveLoopError:
            self._give_up(item, function, config, None, "RecursiveInvocation")
            return
        except ThrottledError:
            item.throttles += 1
            self._put(item, min(2.0 ** (item.throttles - 1), _MAX_THROTTLE_SECONDS))
            return
        self._finish(item, function, config, result)

    def _finish(
        self, item: _Deferred, function: Any, config: dict[str, Any], result: InvocationResult
    ) -> None:
        item.attempts += 1
        item.request_id = result.request_id
        if not result.failed:
            return
        if item.attempts > config["MaximumRetryAttempts"]:
            self._give_up(item, function, config, result.outcome, "RetriesExhausted")
            return
        delay = self._retry_seconds[min(item.attempts, len(self._retry_seconds)) - 1]
        self._put(item, delay)

    def _give_up(
        self,
        item: _Deferred,
        function: Any,
        config: dict[str, Any],
        outcome: Outcome | None,
        condition: str,
    ) -> None:
        destination = config["OnFailure"]
        if destination:
            record = _destination_record(item, function, outcome, condition)
            self._send(destination, json.dumps(record))


def _event_config(function: Any) -> dict[str, Any]:
    configs = function.event_invoke_config
    stored = configs[-1].config if configs else {}
    on_failure = stored.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    attempts = stored.get("MaximumRetryAttempts")
    return {
        "MaximumRetryAttempts": 2 if attempts is None else int(attempts),
        "MaximumEventAgeInSeconds": int(
            stored.get("MaximumEventAgeInSeconds") or _MAX_EVENT_AGE_SECONDS
        ),
        "OnFailure": on_failure,
    }


def _destination_record(
    item: _Deferred, function: Any, outcome: Outcome | None, condition: str
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "version": "1.0",
        "timestamp": datetime.now(UTC).isoformat(),
        "requestContext": {
            "requestId": item.request_id,
            "functionArn": f"{function.function_arn}:$LATEST",
            "condition": condition,
            "approximateInvokeCount": item.attempts,
        },
        "requestPayload": json.loads(item.payload or b"{}"),
    }
    if outcome is not None:
        record["responseContext"] = {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        }
        record["responsePayload"] = json.loads(outcome.payload)
    return record
