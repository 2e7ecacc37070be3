"""Interrupt: acts on what AWS says about our machines."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.interrupt.runtime import load_runtime
from shared.messages.notices import decode_notice
from shared.runtime.collecting import collects_afterwards
from shared.runtime.observability import (
    logger,
    metrics,
    serve_each,
    sets_invalid_events_aside,
    tell,
)


@collects_afterwards
@logger.inject_lambda_context
@metrics.log_metrics
@sets_invalid_events_aside
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve one event of EC2 or AWS Health; machines that are not ours are left alone."""
    notice = decode_notice(event)
    runtime = load_runtime()

    def serve(instance_id: str) -> None:
        cluster = runtime.cluster_of(instance_id)
        if cluster is None:
            return
        report = runtime.service(cluster).run(notice, instance_id)
        tell(cluster, {"Interruptions": int(report.interrupted)})
        logger.info(
            "notice",
            cluster=cluster,
            kind=notice.kind.value,
            node=report.node,
            instance_id=instance_id,
            action=report.action,
            request=context.aws_request_id,
        )

    serve_each(event, notice.instance_ids, serve)
