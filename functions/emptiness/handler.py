"""Emptiness: starts the timer of a node that became empty, and takes its steps."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.nodes.leave.emptiness_timer import Emptiness
from shared.runtime.logs_and_metrics import logger, metrics
from shared.runtime.serve_events import dead_letters_invalid_events, start_timers
from shared.runtime.service_runtime import runtime_of
from shared.runtime.timer_steps import take_step
from shared.runtime.wiring import ActingRole
from shared.settings import TimerSettings

load_runtime = runtime_of(TimerSettings, ActingRole.INSIDE, lambda _: Emptiness)


@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve one `node-empty` event, or one step of an EmptinessTimer (its state in and out)."""
    if "detail" not in event:
        return take_step(load_runtime(), event, "emptiness step")
    start_timers(load_runtime(), event, "emptiness reported", context)
    return {}
