"""Termination: starts the drain of a node that is being deleted, and takes its steps."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.termination.runtime import load_runtime
from shared.model.messages.message import decode
from shared.model.timer_state import text_of
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
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve one `node-deleted` event, or one step of a NodeTermination (its state in and out)."""
    if "detail" not in event:
        state = load_runtime().service(text_of(event, "cluster")).step(event)
        logger.info("termination step", cluster=state["cluster"], node=state["node"], state=state)
        emit_metrics(
            state["cluster"],
            {
                "DrainsBlocked": int("blocked" in state),
                "NodesReleased": int(state.get("result") == "terminated"),
                **(
                    {"DollarsPerHourReleased": state["released_micros_per_hour"] / 1_000_000}
                    if state.get("released_micros_per_hour")
                    else {}
                ),
            },
        )
        return state
    message, runtime = decode(event), load_runtime()
    if not runtime.admits(message):
        return {}
    service = runtime.service(message.cluster)

    def serve(node_name: str) -> None:
        outcome = service.begin(node_name)
        logger.info(
            "node deleted",
            cluster=message.cluster,
            node=node_name,
            outcome=outcome,
            request=context.aws_request_id,
        )

    serve_each(event, (node.name for node in message.detail.objects), serve)
    return {}
