"""Records that cannot be understood, put aside for people."""

import re
from typing import Final

from shared.aws.errors import translated
from shared.aws.session import Session

_REASON_LENGTH: Final = 1000
# SQS takes tab, line ends and what is printable in XML.
# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/
# API_SendMessage.html (2026-08).
_NOT_TAKEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class DeadLetters:
    """The queue of records that no repeating can help."""

    def __init__(self, session: Session, *, queue_url: str) -> None:
        """Prepare; nothing is called yet."""
        self._session = session
        self._queue_url = queue_url

    def send(self, record: str, reason: str) -> None:
        """Send a record, as it came, with the reason as its attribute `reason`.

        Characters that SQS does not take are replaced; an empty record becomes a space.
        """
        with translated("sqs SendMessage"):
            self._session.client("sqs").send_message(
                QueueUrl=self._queue_url,
                MessageBody=_clean(record) or " ",
                MessageAttributes={
                    "reason": {
                        "DataType": "String",
                        "StringValue": _clean(reason)[:_REASON_LENGTH] or "unknown",
                    }
                },
            )


def _clean(text: str) -> str:
    return _NOT_TAKEN.sub("\ufffd", text)
