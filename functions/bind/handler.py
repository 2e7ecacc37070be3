"""Bind: initializes nodes whose kubelet became Ready, and binds their pods."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.bind.runtime import load_runtime
from shared.model.messages.message import decode
from shared.runtime.logs_and_metrics import (
    dead_letters_invalid_events,
    emit_metrics,
    logger,
    metrics,
    serve_each,
)


@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve one `node-ready` event; the current state of each of its nodes is read."""
    message, runtime = decode(event), load_runtime()
    if not runtime.admits(message):
        return
    service = runtime.service(message.cluster)

    def serve(node_name: str) -> None:
        report = service.run(node_name)
        emit_metrics(
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

    serve_each(event, (node.name for node in message.detail.objects), serve)
