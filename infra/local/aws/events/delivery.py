"""Delivery of one event to the targets of a rule, each on its own.

Locally a delivery fails only when the target is missing. Then EventBridge does not retry; the
event goes to the dead-letter queue.
Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
(2026-11-21).
"""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from infra.local.aws.background import shielded
from infra.local.aws.queues import QueueMissingError, send_to_queue


class TargetRefusedError(Exception):
    """The target does not exist."""


Sender = Callable[[str, str], None]
"""Sends a text to the target of an ARN; raises `TargetRefusedError`."""


class Deliveries:
    """Sends to queues at once, to functions from two threads."""

    def __init__(self, to_function: Sender) -> None:
        self._senders: Mapping[str, Sender] = {"lambda": to_function, "sqs": _to_queue}
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="delivery")

    def send(self, event: Mapping[str, Any], target: Mapping[str, Any], rule_arn: str) -> None:
        """Deliver an event to a target in which `target_problem` finds nothing."""
        service = _service(target)
        event = plain_event(event)
        if service == "sqs":
            self._attempt(self._senders[service], event, target, rule_arn)
        else:
            attempt = shielded(self._attempt)
            self._threads.submit(attempt, self._senders[service], event, target, rule_arn)

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _attempt(
        self, sender: Sender, event: Mapping[str, Any], target: Mapping[str, Any], rule_arn: str
    ) -> None:
        try:
            sender(target["Arn"], render(target, event))
        except TargetRefusedError as refusal:
            queue = (target.get("DeadLetterConfig") or {}).get("Arn")
            attributes = {
                "RULE_ARN": rule_arn,
                "TARGET_ARN": target["Arn"],
                "ERROR_CODE": "RESOURCE_NOT_FOUND",
                "ERROR_MESSAGE": str(refusal),
                "EXHAUSTED_RETRY_CONDITION": "NonRetryable",
                "RETRY_ATTEMPTS": "0",
            }
            if queue:
                with suppress(QueueMissingError):
                    send_to_queue(queue, json.dumps(event), attributes=attributes)


def target_problem(target: Mapping[str, Any]) -> str:
    """Return why a target would never get what it asks for here, empty when it does."""
    if _service(target) not in ("lambda", "sqs"):
        return f"target {target['Arn']} is not emulated: use a queue or a function"
    if {"InputPath", "InputTransformer"} & target.keys():
        return f"target {target['Arn']}: only Input is emulated"
    return ""


def _service(target: Mapping[str, Any]) -> str:
    return str(target["Arn"]).split(":")[2]


def _to_queue(arn: str, text: str) -> None:
    try:
        send_to_queue(arn, text)
    except QueueMissingError as error:
        raise TargetRefusedError(str(error)) from error


def plain_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event as targets see it: its time as text."""
    return {**event, "time": _time_text(event.get("time"))}


def render(target: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """Return the text a target gets, normally JSON."""
    return str(target.get("Input") or json.dumps(event))


def _time_text(value: Any) -> str:
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
        return value
    if isinstance(value, datetime):
        moment = value
    else:
        moment = datetime.fromtimestamp(float(value or 0), UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
