"""Sweep: checks every cluster each minute for what events missed."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.sweep.runtime import SweepRuntime, load_runtime
from shared.model.errors import AutoscalerError, NotAttachedError, NotInstalledError
from shared.model.messages.message import SCHEDULE, decode
from shared.runtime.logs_and_metrics import count, emit_metrics, logger, metrics
from shared.runtime.python_gc import python_gc_afterwards
from shared.runtime.reports import report_sweep
from shared.runtime.serve_events import dead_letters_invalid_events


@python_gc_afterwards
@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve the schedule, or the sweep of one cluster.

    The schedule's invocation sweeps nothing itself: it invokes sweep for each cluster, so that a
    slow or unreachable cluster does not affect the others.
    """
    runtime = load_runtime()
    if event.get("source") == SCHEDULE:
        _sweep_all(runtime, context)
        return
    _sweep(runtime, decode(event).cluster, context)


def _sweep_all(runtime: SweepRuntime, context: LambdaContext) -> None:
    for cluster in runtime.clusters():
        try:
            runtime.invoke_sweep(cluster)
        except AutoscalerError as error:
            _report_failure(cluster, error, context.aws_request_id)
    count("SweepRounds", 1)


def _sweep(runtime: SweepRuntime, cluster: str, context: LambdaContext) -> None:
    try:
        report_sweep(cluster, runtime.service(cluster).run())
    except NotInstalledError as error:
        logger.warning(
            "nothing to sweep: apply the cluster manifests", cluster=cluster, error=str(error)
        )
    except NotAttachedError:
        raise
    except AutoscalerError as error:
        # The next minute is soon enough to try again.
        _report_failure(cluster, error, context.aws_request_id)


def _report_failure(cluster: str, error: AutoscalerError, request: str) -> None:
    emit_metrics(cluster, {"SweepFailures": 1})
    logger.exception("sweep failed", cluster=cluster, error=str(error), request=request)
