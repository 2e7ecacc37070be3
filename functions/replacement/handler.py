"""Replacement: runs the steps that remove nodes once their replacements are ready."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.model.timer_state import DONE
from shared.nodes.leave.replacement import REPLACED_ALL, Replacement
from shared.nodes.timers.node_timer import CONTINUED
from shared.runtime.logs_and_metrics import emit_metrics, logger, metrics
from shared.runtime.python_gc import python_gc_afterwards
from shared.runtime.service_runtime import runtime_of
from shared.runtime.timer_steps import take_step
from shared.runtime.wiring import ActingRole
from shared.settings import TimerSettings

load_runtime = runtime_of(TimerSettings, ActingRole.INSIDE, lambda _: Replacement)


@python_gc_afterwards
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take one step: the timer's state in, its next state out."""
    state = take_step(load_runtime(), event, "replacement step", request=context.aws_request_id)
    is_done = state["next"] == DONE
    result = state.get("result")
    emit_metrics(
        state["cluster"],
        {
            "NodesReplaced": len(state["remove"]) if is_done and result == REPLACED_ALL else 0,
            "ReplacementsGivenUp": int(is_done and result not in (REPLACED_ALL, CONTINUED)),
        },
    )
    return state
