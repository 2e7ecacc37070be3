"""Everything that runs beside moto in the server's process, wired together."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from infra.local.aws.access.permissions import Permissions
from infra.local.aws.control import Control
from infra.local.aws.events.bus import EventBus
from infra.local.aws.events.delivery import Deliveries, TargetRefusedError
from infra.local.aws.events.schedules import Scheduler
from infra.local.aws.execution.deferred import RETRY_SECONDS, DeferredInvocations
from infra.local.aws.execution.function import FunctionNotFoundError
from infra.local.aws.execution.invoker import Invoker
from infra.local.aws.execution.output import FunctionOutput
from infra.local.aws.queues import QueueMissingError, send_to_queue
from infra.local.aws.refusals import Throttle
from infra.local.aws.sources.poller import MappingSupervisor
from infra.local.removal import remove_folder


class FunctionSender:
    """Invokes a function asynchronously, as EventBridge does."""

    def __init__(self) -> None:
        self.deferred: DeferredInvocations | None = None

    def __call__(self, arn: str, text: str) -> None:
        """Hand the text to the function's own queue."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of one server.

    Attributes:
        workers: invocations that may run at the same time; more wait for their turn.
        retry_seconds: waits before the second and third asynchronous attempt.
        log_dir: folder for one log file per function, or None.
    """

    region: str = "us-east-1"
    workers: int = 8
    retry_seconds: tuple[float, ...] = RETRY_SECONDS
    log_dir: Path | None = None


class Services:
    """The parts that live beside moto: Lambda, its event sources, EventBridge's delivery."""

    def __init__(self, control: Control, options: Options) -> None:
        region, account = control.region, control.account_id
        self._code_root = Path(tempfile.mkdtemp(prefix="dovetail-functions-"))
        self.permissions = Permissions(account)
        self.output = FunctionOutput(
            account_id=account, region=region, folder=options.log_dir, may=self.permissions.may
        )
        self.invoker = Invoker(
            url=control.url,
            account_id=account,
            region=region,
            workers=options.workers,
            code_root=self._code_root,
            output=self.output,
        )
        functions = FunctionSender()
        self.deliveries = Deliveries(functions)
        self.bus = EventBus(
            self.deliveries, account_id=account, region=region, harmed=control.harmed
        )
        self.throttle = Throttle(control.harmed)
        self.deferred = DeferredInvocations(
            self.invoker,
            workers=options.workers,
            retry_seconds=options.retry_seconds,
            send=send_to_destination,
        )
        functions.deferred = self.deferred
        self.scheduler = Scheduler(self.bus, account_id=account, region=region)
        self.mappings = MappingSupervisor(self.invoker)
        control.deliver_events_to(self.bus.emit)

    def start(self) -> None:
        for part in (self.output, self.deferred, self.scheduler, self.mappings):
            part.start()

    def reset(self) -> None:
        """Forget everything moto just forgot."""
        for part in (self.deferred, self.bus, self.scheduler, self.mappings):
            part.clear()
        self.invoker.reset()
        self.permissions.clear()
        self.throttle.clear()

    def stop(self) -> None:
        for part in (self.scheduler, self.mappings, self.deferred, self.deliveries, self.output):
            part.stop()
        self.invoker.stop()
        remove_folder(self._code_root)
