"""Expiration: takes the steps of ExpirationTimers."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.nodes.leave.expiration_timer import Expiration
from shared.runtime.logs_and_metrics import logger, metrics
from shared.runtime.service_runtime import runtime_of
from shared.runtime.timer_steps import take_step
from shared.runtime.wiring import ActingRole
from shared.settings import TimerSettings

load_runtime = runtime_of(TimerSettings, ActingRole.INSIDE, lambda _: Expiration)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take one step: the timer's state in, its next state out."""
    return take_step(load_runtime(), event, "expiration step", request=context.aws_request_id)
