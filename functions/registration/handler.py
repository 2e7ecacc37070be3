"""Registration: takes the steps of RegistrationTimers."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.nodes.join.registration import NEVER_JOINED, Registration
from shared.runtime.logs_and_metrics import emit_metrics, logger, metrics
from shared.runtime.service_runtime import runtime_of
from shared.runtime.timer_steps import take_step
from shared.runtime.wiring import ActingRole
from shared.settings import TimerSettings

load_runtime = runtime_of(TimerSettings, ActingRole.INSIDE, lambda _: Registration)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take one step: the timer's state in, its next state out."""
    state = take_step(load_runtime(), event, "registration step", request=context.aws_request_id)
    never_joined = state.get("result") == NEVER_JOINED
    emit_metrics(
        state["cluster"],
        {
            "NodesNeverJoined": int(never_joined),
            "ImagesStopped": int(never_joined and bool(state.get("image_stopped"))),
        },
    )
    return state
