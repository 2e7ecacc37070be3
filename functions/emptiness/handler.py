"""Emptiness: starts the timer of a node that became empty, and takes its steps."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.emptiness.runtime import load_runtime
from shared.model.messages.message import decode
from shared.model.timer_state import text_of
from shared.runtime.logs_and_metrics import dead_letters_invalid_events, logger, metrics, serve_each


@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve one `node-empty` event, or one step of an EmptinessTimer (its state in and out)."""
    if "detail" not in event:
        service = load_runtime().service(text_of(event, "cluster"))
        state = service.step(event)
        logger.info("emptiness step", cluster=state["cluster"], node=state["node"], state=state)
        return state
    message, runtime = decode(event), load_runtime()
    if not runtime.admits(message):
        return {}
    service = runtime.service(message.cluster)

    def serve(node_name: str) -> None:
        outcome = service.begin(node_name)
        logger.info(
            "emptiness reported",
            cluster=message.cluster,
            node=node_name,
            outcome=outcome,
            request=context.aws_request_id,
        )

    serve_each(event, (node.name for node in message.detail.objects), serve)
    return {}
