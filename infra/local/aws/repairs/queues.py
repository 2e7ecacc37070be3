"""SQS: a cheap clock, no race between sender and receiver, no built-in event source, traces."""

import threading
import time
from typing import Any
from urllib.parse import unquote

from infra.local.aws.moto_patches import repair, replace

LOCK = threading.RLock()
"""One lock for all queues: an operation takes microseconds, and redrive spans two queues."""


@repair("sqs-clock")
def use_the_system_clock() -> None:
    """Read the time once per message cheaply; moto builds two datetimes for each."""
    import moto.sqs.models as sqs

    replace(sqs, "unix_time", time.time)
    replace(sqs, "unix_time_millis", lambda: time.time() * 1000)


@repair("sqs-no-built-in-mapping")
def leave_mappings_to_the_supervisor() -> None:
    """Add a message without invoking functions inside SendMessage."""
    from moto.sqs.models import Queue

    stock = Queue.add_message

    def add_message(self: Any, message: Any) -> None:
        mappings, self.lambda_event_source_mappings = self.lambda_event_source_mappings, {}
        try:
            stock(self, message)
        finally:
            self.lambda_event_source_mappings = mappings

    def locked(self: Any, message: Any) -> None:
        with LOCK:
            add_message(self, message)

    replace(Queue, "add_message", locked)


@repair("sqs-atomic-operations")
def make_operations_atomic() -> None:
    """Lock receive and delete: two pollers took one message, and a delete lost a fresh one."""
    from moto.sqs.models import Queue, SQSBackend

    stock_delete, stock_receive = Queue.delete_message, SQSBackend.receive_message

    def delete_message(self: Any, receipt_handle: str) -> None:
        with LOCK:
            stock_delete(self, receipt_handle)

    def receive_message(
        self: Any,
        queue_name: str,
        count: int,
        wait_seconds_timeout: int,
        visibility_timeout: int,
        message_attribute_names: list[str] | None = None,
    ) -> list[Any]:
        ends = time.monotonic() + (wait_seconds_timeout or 0)
        while True:
            with LOCK:
                found: list[Any] = stock_receive(
                    self, queue_name, count, 0, visibility_timeout, message_attribute_names
                )
            left = ends - time.monotonic()
            if found or left <= 0:
                return found
            self.get_queue(queue_name).wait_for_messages(min(left, 1.0))

    replace(Queue, "delete_message", delete_message)
    replace(SQSBackend, "receive_message", receive_message)


@repair("sqs-traces")
def keep_trace_headers() -> None:
    """Keep the trace header of the request with the message, as SQS does.

    Source: https://docs.aws.amazon.com/xray/latest/devguide/xray-services-sqs.html (2026-11).
    """
    from flask import has_request_context, request
    from moto.sqs.models import SQSBackend

    stock = SQSBackend.send_message

    def send_message(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Not what EventBridge sends: its chains are not followed.
        asked = has_request_context() and request.headers.get("X-Amz-Target", "")
        if asked and asked.startswith("AmazonSQS."):
            header = unquote(request.headers.get("X-Amzn-Trace-Id", ""))
            traced = {"AWSTraceHeader": {"data_type": "String", "string_value": header}}
            kwargs["system_attributes"] = traced | (kwargs.get("system_attributes") or {})
        return stock(self, *args, **kwargs)

    replace(SQSBackend, "send_message", send_message)
