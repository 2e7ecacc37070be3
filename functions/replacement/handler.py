"""Replacement: runs the steps that remove nodes once their replacements are ready."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.replacement.runtime import load_runtime
from shared.model.timer_state import DONE, text_of
from shared.node_lifecycle.node_timer import CONTINUED
from shared.node_lifecycle.replacement import REPLACED_ALL
from shared.runtime.collecting import collects_afterwards
from shared.runtime.observability import logger, metrics, tell


@collects_afterwards
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take one step: the timer's state in, its next state out."""
    state = load_runtime().service(text_of(event, "cluster")).step(event)
    logger.info(
        "replacement step",
        cluster=state["cluster"],
        node=state["node"],
        state=state,
        request=context.aws_request_id,
    )
    over = state["next"] == DONE
    result = state.get("result")
    tell(
        state["cluster"],
        {
            "NodesReplaced": len(state["remove"]) if over and result == REPLACED_ALL else 0,
            "ReplacementsGivenUp": int(over and result not in (REPLACED_ALL, CONTINUED)),
        },
    )
    return state
