"""Provision: plans for waiting pods and launches; fed by the queue and by the fast lane."""

from datetime import timedelta
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.messages.wake import Kind, Message, decode
from shared.model.errors import PermanentError, RetryableError
from shared.runtime.bootstrap import ProvisionRuntime, provision_runtime
from shared.runtime.observability import logger, metrics, sets_invalid_events_aside
from shared.runtime.reports import report_provision
from shared.services.waking import ClusterWake, wakes

# When somebody else plans just now: a plan takes a second or two.
_TURN: Final = timedelta(seconds=2)


@logger.inject_lambda_context
@metrics.log_metrics
@sets_invalid_events_aside
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve a batch of queue records, or one event of the fast lane."""
    runtime = provision_runtime()
    if "Records" not in event:
        _serve_at_once(runtime, decode(event), context)
        return {"batchItemFailures": []}
    bodies = {one["messageId"]: one["body"] for one in event["Records"]}
    clusters, invalid = wakes(bodies.items())
    for record in invalid:
        runtime.dead_letter(record.text, record.reason)
    failed: list[str] = []
    for position, wake in enumerate(clusters):
        try:
            _serve(runtime, wake, context, first=position == 0)
        except PermanentError as error:
            # Such as a cluster that is not attached: coming again changes nothing.
            logger.exception("cannot plan", cluster=wake.cluster, error=str(error))
            for record_id in wake.record_ids:
                runtime.dead_letter(bodies[record_id], str(error))
        except RetryableError as error:
            logger.warning("plan again later", cluster=wake.cluster, error=str(error))
            if not runtime.wake_later(wake.cluster, error.delay, look=wake.look):
                failed.extend(wake.record_ids)
    return {"batchItemFailures": [{"itemIdentifier": one} for one in failed]}


def _serve_at_once(runtime: ProvisionRuntime, message: Message, context: LambdaContext) -> None:
    looks = message.kind == Kind.LOOK
    service = runtime.service(message.cluster)
    try:
        report = service.run(
            context.aws_request_id, runtime.deadline(context), settle=not looks, look=looks
        )
    except RetryableError as error:
        # The record of the same pod may be settled by now: it found us planning, and left it to us.
        logger.warning("plan again later", cluster=message.cluster, error=str(error))
        if not runtime.wake_later(message.cluster, error.delay, look=looks):
            raise
        return
    report_provision(message.cluster, report, lane="fast")


def _serve(
    runtime: ProvisionRuntime, wake: ClusterWake, context: LambdaContext, *, first: bool
) -> None:
    service = runtime.service(wake.cluster)
    if wake.provisioners_changed or wake.look:
        service.report_provisioners()
    if first:
        report = service.run(
            context.aws_request_id, runtime.deadline(context), settle=False, look=wake.look
        )
        report_provision(wake.cluster, report, lane="queue")
        if wake.look and not report.leading:
            # Whoever holds the lease plans once more, but may not look over all nodes.
            runtime.wake_later(wake.cluster, _TURN, look=True)
    else:
        # One message each, so that no cluster waits for another.
        runtime.wake(wake.cluster, look=wake.look)
