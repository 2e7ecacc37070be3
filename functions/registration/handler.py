"""Registration: takes the steps of RegistrationTimers."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.registration.runtime import load_runtime
from shared.model.timer_state import text_of
from shared.nodes.join.registration import NEVER_JOINED
from shared.runtime.logs_and_metrics import emit_metrics, logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take one step: the timer's state in, its next state out."""
    state = load_runtime().service(text_of(event, "cluster")).step(event)
    logger.info(
        "registration step",
        cluster=state["cluster"],
        node=state["node"],
        state=state,
        request=context.aws_request_id,
    )
    never_joined = state.get("result") == NEVER_JOINED
    emit_metrics(
        state["cluster"],
        {
            "NodesNeverJoined": int(never_joined),
            "ImagesStopped": int(never_joined and bool(state.get("image_stopped"))),
        },
    )
    return state
