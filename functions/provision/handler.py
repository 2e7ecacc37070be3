"""Provision: plans for waiting pods and launches nodes; called by the queue and the fast lane."""

import json
from datetime import timedelta
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.provision.runtime import ProvisionRuntime, load_runtime
from shared.model.errors import AutoscalerError, PermanentError, RetryableError
from shared.model.messages.message import FAST, decode
from shared.provisioning.cluster_wakes import ClusterWake, InvalidRecord, wake_of, wakes
from shared.provisioning.provision import Provisioning
from shared.runtime.logs_and_metrics import logger, metrics
from shared.runtime.python_gc import python_gc_afterwards
from shared.runtime.reports import report_provision
from shared.runtime.serve_events import dead_letters_invalid_events

# How long another invocation's plan takes: a second or two.
_PLAN_DURATION: Final = timedelta(seconds=2)


@python_gc_afterwards
@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve a batch of queue records, or one event for one cluster.

    A batch of several clusters is not served here: provision is invoked for each cluster, so that
    none waits for another.
    """
    runtime = load_runtime()
    if "Records" not in event:
        _serve_event(runtime, event, context)
        return {"batchItemFailures": []}
    bodies = {record["messageId"]: record["body"] for record in event["Records"]}
    clusters, invalid = wakes(bodies.items())
    invalid_records = list(invalid)
    failed: list[str] = []
    for wake in clusters:
        try:
            if len(clusters) == 1:
                _serve(runtime, wake, context)
            else:
                runtime.invoke_provision(wake)
        except PermanentError as error:
            # For example, the cluster is not attached: a retry would change nothing.
            logger.exception("cannot plan", cluster=wake.cluster, error=str(error))
            invalid_records += [
                InvalidRecord(record_id=record_id, text=bodies[record_id], reason=str(error))
                for record_id in wake.record_ids
            ]
        except RetryableError as error:
            logger.warning("the records come again", cluster=wake.cluster, error=str(error))
            failed.extend(wake.record_ids)
    failed += runtime.send_to_dead_letters(invalid_records, context)
    return {"batchItemFailures": [{"itemIdentifier": record_id} for record_id in failed]}


def _serve_event(runtime: ProvisionRuntime, event: dict[str, Any], context: LambdaContext) -> None:
    message = decode(event)
    fast = message.kind in FAST
    # A message that is not served at once is served from the queue, which has it, too.
    if fast and not runtime.admits(message):
        return
    try:
        _serve(runtime, wake_of(message), context, fast=fast)
    except PermanentError as error:
        logger.exception("cannot plan", cluster=message.cluster, error=str(error))
        record = InvalidRecord(record_id="", text=json.dumps(event), reason=str(error))
        if runtime.send_to_dead_letters([record], context):
            raise


def _serve(
    runtime: ProvisionRuntime, wake: ClusterWake, context: LambdaContext, *, fast: bool = False
) -> None:
    """Plan for one cluster, then write the status of its Provisioners if the message requests it.

    Args:
        fast: Whether this is the fast lane, which waits for the end of the burst.

    Raises:
        RetryableError: If planning failed and no message to retry it could be sent.
    """
    try:
        service = runtime.service(wake.cluster)
    except RetryableError as error:
        _plan_later(runtime, wake, error)
        return
    try:
        _plan(runtime, service, wake, context, fast=fast)
    finally:
        # The status is written after the message to plan again is sent, so that a crash here loses
        # no retry. It is for people, so it is written even when planning fails.
        if wake.provisioners_changed or wake.evaluate:
            _report_provisioners(service, wake.cluster)


def _plan(
    runtime: ProvisionRuntime,
    service: Provisioning,
    wake: ClusterWake,
    context: LambdaContext,
    *,
    fast: bool,
) -> None:
    try:
        report = service.run(
            context.aws_request_id,
            runtime.deadline(context),
            wait_for_batch=fast,
            evaluate=wake.evaluate,
        )
    except RetryableError as error:
        _plan_later(runtime, wake, error)
        return
    report_provision(wake.cluster, report, lane="fast" if fast else "queue")
    if wake.evaluate and not report.leading:
        # The holder of the lease plans once more, but may not evaluate all nodes.
        runtime.wake_later(wake.cluster, _PLAN_DURATION, evaluate=True)


def _plan_later(runtime: ProvisionRuntime, wake: ClusterWake, error: RetryableError) -> None:
    """Send a message to plan again: other invocations have left their pods to this one."""
    logger.warning("plan again later", cluster=wake.cluster, error=str(error))
    if not runtime.wake_later(wake.cluster, error.delay, evaluate=wake.evaluate):
        raise error


def _report_provisioners(service: Provisioning, cluster: str) -> None:
    try:
        service.report_provisioners()
    except AutoscalerError as error:
        logger.warning("status of Provisioners is not written", cluster=cluster, error=str(error))
