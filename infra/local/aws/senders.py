"""How EventBridge reaches functions and state machines, and Lambda its destinations."""

from infra.local.aws.backends import machine_backend
from infra.local.aws.events.bus import EventBus
from infra.local.aws.events.delivery import Delivery, TargetRefusedError
from infra.local.aws.execution.deferred import DeferredInvocations
from infra.local.aws.execution.function import FunctionNotFoundError
from infra.local.aws.queues import QueueMissingError, send_to_queue


class FunctionSender:
    """Invokes a function asynchronously, as EventBridge does."""

    def __init__(self) -> None:
        self.deferred: DeferredInvocations | None = None

    def __call__(self, delivery: Delivery, text: str) -> None:
        """Hand the text to the function's own queue.

        Raises:
            TargetRefusedError: the function does not exist.
        """
        assert self.deferred is not None
        try:
            self.deferred.accept(delivery.target["Arn"], text.encode())
        except FunctionNotFoundError as error:
            raise TargetRefusedError("RESOURCE_NOT_FOUND", str(error), retryable=False) from error


def start_machine(delivery: Delivery, text: str) -> None:
    """Start an execution with the text as input.

    Raises:
        TargetRefusedError: the machine does not exist, or refuses the input.
    """
    from moto.stepfunctions.exceptions import InvalidExecutionInput, StateMachineDoesNotExist

    arn = delivery.target["Arn"]
    _, _, _, region, account, *_ = arn.split(":")
    try:
        machine_backend(account, region).start_execution(arn, None, text)
    except (StateMachineDoesNotExist, InvalidExecutionInput) as error:
        raise TargetRefusedError("RESOURCE_NOT_FOUND", str(error), retryable=False) from error


class DestinationSender:
    """Sends a record to a queue, a function or a bus by ARN; unknown kinds are dropped."""

    def __init__(self, bus: EventBus, functions: FunctionSender) -> None:
        self._bus = bus
        self._functions = functions

    def __call__(self, arn: str, body: str) -> None:
        """Send; a missing queue loses the record, as it does on AWS."""
        if ":sqs:" in arn:
            try:
                send_to_queue(arn, body)
            except QueueMissingError:
                return
        elif ":lambda:" in arn and self._functions.deferred is not None:
            try:
                self._functions.deferred.accept(arn, body.encode())
            except FunctionNotFoundError:
                return
