"""Sweep: every minute, looks over every cluster for what events missed."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.messages.wake import SOURCE, decode
from shared.model.errors import AutoscalerError, NotInstalledError
from shared.runtime.bootstrap import sweep_runtime
from shared.runtime.observability import logger, metrics, sets_invalid_events_aside, tell
from shared.runtime.reports import report_sweep


@logger.inject_lambda_context
@metrics.log_metrics
@sets_invalid_events_aside
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve the schedule, or the heartbeat of one forwarder."""
    runtime = sweep_runtime()
    if event.get("source") == SOURCE:
        message = decode(event)
        runtime.note_heartbeat(message.cluster, message.wake.at)
        tell(message.cluster, {"Heartbeats": 1})
        return
    for cluster in runtime.clusters():
        try:
            report_sweep(cluster, runtime.service(cluster).run())
        except NotInstalledError as error:
            logger.warning(
                "nothing to sweep: apply the cluster manifests", cluster=cluster, error=str(error)
            )
        except AutoscalerError as error:
            # One cluster that cannot be read must not hide the others from us.
            tell(cluster, {"SweepFailures": 1})
            logger.exception(
                "sweep failed",
                cluster=cluster,
                error=str(error),
                request=context.aws_request_id,
            )
