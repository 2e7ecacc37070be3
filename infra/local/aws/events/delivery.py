"""Delivery of one event to the targets of a rule, each on its own, with retries.

Locally a delivery fails only when the target is missing (then EventBridge does not retry) or
when a test asked for failures; the retry policy and the dead-letter queue are honoured.
Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
(2026-11-21).
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from infra.local.aws.background import shielded
from infra.local.aws.events.rendering import plain_event, render
from infra.local.aws.queues import QueueMissingError, send_to_queue

_MAX_BACKOFF_SECONDS = 30.0
_DEFAULT_ATTEMPTS = 185
_DEFAULT_AGE_SECONDS = 86_400


class TargetRefusedError(Exception):
    """The target cannot take the event; `retryable` says whether trying again may help."""

    def __init__(self, code: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event for one target."""

    event: Mapping[str, Any]
    target: Mapping[str, Any]
    rule_arn: str
    began: float
    attempt: int = 0


Sender = Callable[[Delivery, str], None]
"""Sends the rendered text to the target; raises `TargetRefusedError`."""


class Deliveries:
    """Sends to queues at once, to everything else from two threads; retries from timers."""

    def __init__(self, senders: Mapping[str, Sender]) -> None:
        self._senders = dict(senders) | {"sqs": _to_queue}
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="delivery")
        self._lock = threading.Lock()
        self._failures: Counter[str] = Counter()

    def send(self, event: Mapping[str, Any], target: Mapping[str, Any], rule_arn: str) -> bool:
        """Deliver an event; return False when moto has to deliver to this service."""
        service = _service_of(target["Arn"])
        if service not in self._senders:
            return False
        delivery = Delivery(
            event=plain_event(event), target=target, rule_arn=rule_arn, began=time.monotonic()
        )
        if service == "sqs":
            self._attempt(delivery)
        else:
            self._threads.submit(shielded(self._attempt), delivery)
        return True

    def fail_next(self, target_arn: str, count: int) -> None:
        """Let the next `count` deliveries to a target fail in a way that may be retried."""
        with self._lock:
            self._failures[target_arn] = count

    def clear(self) -> None:
        """Forget the failures a test asked for."""
        with self._lock:
            self._failures.clear()

    def stop(self) -> None:
        """Deliver nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _attempt(self, delivery: Delivery) -> None:
        try:
            self._fail_if_asked(delivery.target["Arn"])
            text = render(delivery.target, delivery.event, rule_arn=delivery.rule_arn)
            self._senders[_service_of(delivery.target["Arn"])](delivery, text)
        except TargetRefusedError as refusal:
            self._after_refusal(delivery, refusal)

    def _fail_if_asked(self, arn: str) -> None:
        with self._lock:
            if self._failures[arn] <= 0:
                return
            self._failures[arn] -= 1
        raise TargetRefusedError("THROTTLING", "asked for by a test", retryable=True)

    def _after_refusal(self, delivery: Delivery, refusal: TargetRefusedError) -> None:
        policy = delivery.target.get("RetryPolicy") or {}
        most = int(policy.get("MaximumRetryAttempts", _DEFAULT_ATTEMPTS))
        age = float(policy.get("MaximumEventAgeInSeconds", _DEFAULT_AGE_SECONDS))
        delay = min(0.5 * 2.0**delivery.attempt, _MAX_BACKOFF_SECONDS)
        if not refusal.retryable:
            self._bury(delivery, refusal, "NonRetryable")
        elif delivery.attempt >= most:
            self._bury(delivery, refusal, "MaximumRetryAttempts")
        elif time.monotonic() + delay - delivery.began > age:
            self._bury(delivery, refusal, "MaximumEventAgeInSeconds")
        else:
            again = Delivery(
                event=delivery.event,
                target=delivery.target,
                rule_arn=delivery.rule_arn,
                began=delivery.began,
                attempt=delivery.attempt + 1,
            )
            timer = threading.Timer(delay, shielded(self._attempt), (again,))
            timer.daemon = True
            timer.start()

    def _bury(self, delivery: Delivery, refusal: TargetRefusedError, condition: str) -> None:
        queue = (delivery.target.get("DeadLetterConfig") or {}).get("Arn")
        if not queue:
            return
        with suppress(QueueMissingError):
            send_to_queue(
                queue,
                json.dumps(delivery.event),
                attributes={
                    "RULE_ARN": delivery.rule_arn,
                    "TARGET_ARN": delivery.target["Arn"],
                    "ERROR_CODE": refusal.code,
                    "ERROR_MESSAGE": str(refusal),
                    "EXHAUSTED_RETRY_CONDITION": condition,
                    "RETRY_ATTEMPTS": str(delivery.attempt),
                },
            )


def _service_of(arn: str) -> str:
    return arn.split(":")[2]


def _to_queue(delivery: Delivery, text: str) -> None:
    group = (delivery.target.get("SqsParameters") or {}).get("MessageGroupId")
    try:
        send_to_queue(delivery.target["Arn"], text, group=group)
    except QueueMissingError as error:
        raise TargetRefusedError("RESOURCE_NOT_FOUND", str(error), retryable=False) from error
