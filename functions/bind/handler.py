"""Bind: completes nodes whose kubelet became Ready."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.bind.runtime import load_runtime
from shared.messages.wake import decode
from shared.runtime.observability import (
    logger,
    metrics,
    serve_each,
    sets_invalid_events_aside,
    tell,
)


@logger.inject_lambda_context
@metrics.log_metrics
@sets_invalid_events_aside
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve one `node-ready` event; every node of it is looked at anew."""
    message, runtime = decode(event), load_runtime()
    if not runtime.admits(message):
        return
    service = runtime.service(message.cluster)

    def serve(node: str) -> None:
        report = service.run(node)
        tell(
            message.cluster,
            {
                "NodesInitialized": int(report.initialized),
                "PodsBoundAtReady": report.pods_bound,
                "PodsLeftToScheduler": report.pods_left_to_scheduler,
                "BindFailures": report.pods_refused,
            },
        )
        logger.info(
            "node initialized" if report.initialized else "node not ready yet",
            cluster=message.cluster,
            node=report.node,
            waiting_for=report.waiting_for,
            pods_bound=report.pods_bound,
            request=context.aws_request_id,
        )

    serve_each(event, (node.name for node in message.wake.objects), serve)
