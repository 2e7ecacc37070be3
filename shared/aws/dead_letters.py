"""The dead-letter queue of records that cannot be understood."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from shared.aws.errors import translated
from shared.aws.session import Session
from shared.model.errors import AutoscalerError

_REASON_LENGTH: Final = 1000
# SQS accepts tabs, line ends and characters allowed in XML; at most ten messages a call, together
# no larger than one message may be. Queues created before 2025-08 accept 256 KiB.
# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/
# API_SendMessageBatch.html (2026-11).
_NOT_TAKEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_ENTRIES: Final = 10
_MOST_BYTES: Final = 250_000


class DeadLetters:
    """The queue of records for which a retry is useless."""

    def __init__(self, session: Session, *, queue_url: str) -> None:
        self._session = session
        self._queue_url = queue_url

    def send(self, record: str, reason: str) -> None:
        """Send a record, as received, with the reason as its attribute `reason`.

        Characters that SQS does not accept are replaced; an empty record becomes a space.
        """
        with translated("sqs SendMessage"):
            self._session.client("sqs").send_message(
                QueueUrl=self._queue_url, **_message(record, reason)
            )

    def send_all(
        self, records: Sequence[tuple[str, str]], *, in_time: Callable[[], bool]
    ) -> tuple[int, ...]:
        """Send records, each with its reason, in few calls.

        Args:
            records: (record, reason) of each.
            in_time: Called before each call of SQS; once it returns False no further call is made.

        Returns:
            The positions of records that were not sent, sorted.
        """
        refused: list[int] = []
        for positions in _calls(records):
            if not in_time():
                refused.extend(positions)
                continue
            entries = [
                {"Id": str(position), **_message(*records[position])} for position in positions
            ]
            try:
                with translated("sqs SendMessageBatch"):
                    answer = self._session.client("sqs").send_message_batch(
                        QueueUrl=self._queue_url, Entries=entries
                    )
            except AutoscalerError:
                refused.extend(positions)
                continue
            refused.extend(int(entry["Id"]) for entry in answer.get("Failed", ()))
        return tuple(sorted(refused))


def _calls(records: Sequence[tuple[str, str]]) -> Iterator[list[int]]:
    """Yield the positions of the records of each call."""
    positions: list[int] = []
    total_bytes = 0
    for position, (record, _) in enumerate(records):
        size_bytes = len(_clean(record).encode()) + 4 * _REASON_LENGTH
        if positions and (
            len(positions) == _MOST_ENTRIES or total_bytes + size_bytes > _MOST_BYTES
        ):
            yield positions
            positions, total_bytes = [], 0
        positions.append(position)
        total_bytes += size_bytes
    if positions:
        yield positions


def _message(record: str, reason: str) -> dict[str, Any]:
    return {
        "MessageBody": _clean(record) or " ",
        "MessageAttributes": {
            "reason": {
                "DataType": "String",
                "StringValue": _clean(reason)[:_REASON_LENGTH] or "unknown",
            }
        },
    }


def _clean(text: str) -> str:
    return _NOT_TAKEN.sub("\ufffd", text)
