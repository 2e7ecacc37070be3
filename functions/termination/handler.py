"""Termination: starts the drain of a node that is being deleted, and takes its steps."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.nodes.leave.termination import Termination
from shared.ports import NodePorts
from shared.runtime.logs_and_metrics import emit_metrics, logger, metrics
from shared.runtime.serve_events import dead_letters_invalid_events, start_timers
from shared.runtime.service_runtime import runtime_of
from shared.runtime.timer_steps import take_step
from shared.runtime.wiring import ActingRole
from shared.settings import TerminationSettings


def _services(settings: TerminationSettings) -> Callable[[NodePorts], Termination]:
    seconds = settings.drain_deadline_seconds
    return lambda ports: Termination(ports, timedelta(seconds=seconds) if seconds else None)


load_runtime = runtime_of(TerminationSettings, ActingRole.TERMINATE, _services)


@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve one `node-deleted` event, or one step of a NodeTermination (its state in and out)."""
    if "detail" in event:
        start_timers(load_runtime(), event, "node deleted", context)
        return {}
    state = take_step(load_runtime(), event, "termination step")
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
