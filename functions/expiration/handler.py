"""Expiration: takes the steps of ExpirationTimers."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.expiration.runtime import load_runtime
from shared.model.timer_state import text_of
from shared.runtime.logs_and_metrics import logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take one step: the timer's state in, its next state out."""
    state = load_runtime().service(text_of(event, "cluster")).step(event)
    logger.info(
        "expiration step",
        cluster=state["cluster"],
        node=state["node"],
        state=state,
        request=context.aws_request_id,
    )
    return state
