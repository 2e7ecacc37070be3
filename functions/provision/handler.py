"""Provision: plans for waiting pods and launches; fed by the queue and by the fast lane."""

import json
from datetime import timedelta
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.provision.runtime import Runtime, load_runtime
from shared.messages.wake import Kind, decode
from shared.model.errors import AutoscalerError, PermanentError, RetryableError
from shared.provisioning.provision import Provisioning
from shared.provisioning.wake_batch import ClusterWake, InvalidRecord, wake_of, wakes
from shared.runtime.collecting import collects_afterwards
from shared.runtime.observability import logger, metrics, sets_invalid_events_aside
from shared.runtime.reports import report_provision

# Wait while another invocation plans: a plan takes a second or two.
_TURN: Final = timedelta(seconds=2)


@collects_afterwards
@logger.inject_lambda_context
@metrics.log_metrics
@sets_invalid_events_aside
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve a batch of queue records, or one event for one cluster.

    A batch of several clusters is not served here: each cluster has an invocation of its own, so
    that none waits for another.
    """
    runtime = load_runtime()
    if "Records" not in event:
        _serve_event(runtime, event, context)
        return {"batchItemFailures": []}
    bodies = {record["messageId"]: record["body"] for record in event["Records"]}
    clusters, invalid = wakes(bodies.items())
    aside = list(invalid)
    failed: list[str] = []
    for wake in clusters:
        try:
            if len(clusters) == 1:
                _serve(runtime, wake, context)
            else:
                runtime.plan_alone(wake)
        except PermanentError as error:
            # Such as a cluster that is not attached: coming again changes nothing.
            logger.exception("cannot plan", cluster=wake.cluster, error=str(error))
            aside += [
                InvalidRecord(record_id=record_id, text=bodies[record_id], reason=str(error))
                for record_id in wake.record_ids
            ]
        except RetryableError as error:
            logger.warning("the records come again", cluster=wake.cluster, error=str(error))
            failed.extend(wake.record_ids)
    failed += runtime.set_aside(aside, context)
    return {"batchItemFailures": [{"itemIdentifier": record_id} for record_id in failed]}


def _serve_event(runtime: Runtime, event: dict[str, Any], context: LambdaContext) -> None:
    message = decode(event)
    fast = message.kind == Kind.POD_PENDING
    # The queue has the same message.
    if fast and not runtime.admits(message):
        return
    try:
        _serve(runtime, wake_of(message), context, fast=fast)
    except PermanentError as error:
        logger.exception("cannot plan", cluster=message.cluster, error=str(error))
        record = InvalidRecord(record_id="", text=json.dumps(event), reason=str(error))
        if runtime.set_aside([record], context):
            raise


def _serve(
    runtime: Runtime, wake: ClusterWake, context: LambdaContext, *, fast: bool = False
) -> None:
    """Plan for one cluster, then write the status of its Provisioners if it is asked for.

    Args:
        fast: Whether this is the fast lane, which waits for the end of the burst.

    Raises:
        RetryableError: If planning failed, and no message could be sent that repeats it.
    """
    try:
        service = runtime.service(wake.cluster)
    except RetryableError as error:
        _plan_later(runtime, wake, error)
        return
    try:
        _plan(runtime, service, wake, context, fast=fast)
    finally:
        # After the message that plans again, which a process that ends here must not lose. Status
        # is for people, who are told also where planning fails.
        if wake.provisioners_changed or wake.look:
            _report_provisioners(service, wake.cluster)


def _plan(
    runtime: Runtime,
    service: Provisioning,
    wake: ClusterWake,
    context: LambdaContext,
    *,
    fast: bool,
) -> None:
    try:
        report = service.run(
            context.aws_request_id, runtime.deadline(context), settle=fast, look=wake.look
        )
    except RetryableError as error:
        _plan_later(runtime, wake, error)
        return
    report_provision(wake.cluster, report, lane="fast" if fast else "queue")
    if wake.look and not report.leading:
        # The holder of the lease plans once more, but may not evaluate all nodes.
        runtime.wake_later(wake.cluster, _TURN, look=True)


def _plan_later(runtime: Runtime, wake: ClusterWake, error: RetryableError) -> None:
    """Send a message that plans again: other invocations have left their pods to this one."""
    logger.warning("plan again later", cluster=wake.cluster, error=str(error))
    if not runtime.wake_later(wake.cluster, error.delay, look=wake.look):
        raise error


def _report_provisioners(service: Provisioning, cluster: str) -> None:
    try:
        service.report_provisioners()
    except AutoscalerError as error:
        logger.warning("status of Provisioners is not written", cluster=cluster, error=str(error))
