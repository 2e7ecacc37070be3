"""One batch of queue messages: the event it becomes and what its answer means."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

MAX_BATCH_BYTES = 6 * 1024 * 1024
_RECORD_OVERHEAD_BYTES = 700


class InvalidAnswerError(Exception):
    """The function's answer is no valid list of failed items: the whole batch failed."""


def size_of(message: Any) -> int:
    """Roughly how many bytes a message adds to the invocation payload."""
    return len(message.body.encode()) + _RECORD_OVERHEAD_BYTES


def trace_of(message: Any) -> str:
    """Return the trace header that a message was sent with, empty for none."""
    return str(message.system_attributes.get("AWSTraceHeader", {}).get("string_value", ""))


def event_of(messages: Sequence[Any], *, queue_arn: str, region: str) -> bytes:
    """Build the SQS event of the batch."""
    return json.dumps(
        {"Records": [_record(message, queue_arn, region) for message in messages]}
    ).encode()


def _record(message: Any, queue_arn: str, region: str) -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": str(message.approximate_receive_count),
        "SentTimestamp": str(message.sent_timestamp),
        "SenderId": message.sender_id,
        "ApproximateFirstReceiveTimestamp": str(message.approximate_first_receive_timestamp),
    }
    if message.group_id is not None:
        attributes["MessageGroupId"] = message.group_id
    if message.deduplication_id is not None:
        attributes["MessageDeduplicationId"] = message.deduplication_id
    if trace := trace_of(message):
        attributes["AWSTraceHeader"] = trace
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt_handle,
        "body": message.body,
        "attributes": attributes,
        "messageAttributes": {
            name: {
                "dataType": value.get("DataType"),
                "stringValue": value.get("StringValue"),
                "stringListValues": [],
                "binaryListValues": [],
            }
            for name, value in sorted((message.message_attributes or {}).items())
        },
        "md5OfBody": hashlib.md5(message.body.encode(), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": region,
    }


def failed_items(answer: bytes, message_ids: frozenset[str]) -> frozenset[str]:
    """Read which messages failed from a ReportBatchItemFailures answer; none when empty.

    Raises:
        InvalidAnswerError: not JSON, a wrong key, an unknown or an empty identifier.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    (2026-11-21).
    """
    try:
        document = json.loads(answer) if answer else None
    except ValueError:
        raise InvalidAnswerError("the answer is not JSON") from None
    if not document:
        return frozenset()
    items = document.get("batchItemFailures", ()) if isinstance(document, dict) else None
    if items is None:
        return frozenset()
    failed: set[str] = set()
    for item in items:
        identifier = item.get("itemIdentifier") if isinstance(item, dict) else None
        if identifier not in message_ids:
            raise InvalidAnswerError(f"{identifier!r} is no message of this batch")
        failed.add(identifier)
    return frozenset(failed)
