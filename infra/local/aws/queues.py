"""Direct access to moto's queues for the parts of the emulation that live in this process."""

from typing import Any

from infra.local.aws.backends import backend


class QueueMissingError(Exception):
    """There is no queue of that ARN."""


def backend_of(account_id: str, region: str) -> Any:
    return backend("sqs", account_id, region)


def find_queue(arn: str) -> Any:
    """Return moto's queue of an ARN."""
    parts = arn.split(":")
    if len(parts) != 6 or parts[2] != "sqs":
        raise QueueMissingError(f"{arn} is not the ARN of a queue")
    queue = backend_of(parts[4], parts[3]).queues.get(parts[5])
    if queue is None:
        raise QueueMissingError(f"queue {arn} does not exist")
    return queue


def send_to_queue(
    arn: str, body: str, *, attributes: dict[str, str] | None = None, group: str | None = None
) -> None:
    """Send one message."""
    queue = find_queue(arn)
    backend_of(queue.account_id, queue.region).send_message(
        queue_name=queue.name,
        message_body=body,
        message_attributes={
            name: {"DataType": "String", "StringValue": value}
            for name, value in (attributes or {}).items()
        },
        group_id=group,
    )
