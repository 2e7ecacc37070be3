"""Sweep: every minute, looks over every cluster for what events missed."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.sweep.runtime import Runtime, load_runtime
from shared.messages.wake import SCHEDULE, decode
from shared.model.errors import AutoscalerError, NotAttachedError, NotInstalledError
from shared.runtime.collecting import collects_afterwards
from shared.runtime.observability import (
    count,
    logger,
    metrics,
    sets_invalid_events_aside,
    tell,
)
from shared.runtime.reports import report_sweep


@collects_afterwards
@logger.inject_lambda_context
@metrics.log_metrics
@sets_invalid_events_aside
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve the schedule, or the sweep of one cluster.

    The schedule sweeps nothing itself: each cluster has an invocation of its own, so that what one
    of them answers, or does not, costs no other anything.
    """
    runtime = load_runtime()
    if event.get("source") == SCHEDULE:
        _sweep_all(runtime, context)
        return
    _sweep(runtime, decode(event).cluster, context)


def _sweep_all(runtime: Runtime, context: LambdaContext) -> None:
    for cluster in runtime.clusters():
        try:
            runtime.sweep_alone(cluster)
        except AutoscalerError as error:
            _failed(cluster, error, context.aws_request_id)
    count("SweepRounds", 1)


def _sweep(runtime: Runtime, cluster: str, context: LambdaContext) -> None:
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
        _failed(cluster, error, context.aws_request_id)


def _failed(cluster: str, error: AutoscalerError, request: str) -> None:
    tell(cluster, {"SweepFailures": 1})
    logger.exception("sweep failed", cluster=cluster, error=str(error), request=request)
