"""How EventBridge reaches functions, and Lambda its destinations."""

from infra.local.aws.events.delivery import TargetRefusedError
from infra.local.aws.execution.deferred import DeferredInvocations
from infra.local.aws.execution.function import FunctionNotFoundError
from infra.local.aws.queues import QueueMissingError, send_to_queue


class FunctionSender:
    """Invokes a function asynchronously, as EventBridge does."""

    def __init__(self) -> None:
        self.deferred: DeferredInvocations | None = None

    def __call__(self, arn: str, text: str) -> None:
        """Hand the text to the function's own queue.

        Raises:
            TargetRefusedError: the function does not exist.
        """
        assert self.deferred is not None
        try:
            self.deferred.accept(arn, text.encode())
        except FunctionNotFoundError as error:
            raise TargetRefusedError(str(error)) from error


def send_to_destination(arn: str, body: str) -> None:
    """Send a record to a queue; a missing queue loses the record, as it does on AWS.

    Raises:
        NotImplementedError: The destination is no queue.
    """
    # Every destination of the deployment is a queue; a record for another must not vanish.
    if ":sqs:" not in arn:
        raise NotImplementedError(f"destination {arn} is not emulated")
    try:
        send_to_queue(arn, body)
    except QueueMissingError:
        return
