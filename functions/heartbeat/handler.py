"""Heartbeat: writes down when each forwarder was last heard of."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.heartbeat.runtime import load_runtime
from shared.messages.wake import decode
from shared.runtime.observability import logger, metrics, sets_invalid_events_aside, tell


@logger.inject_lambda_context
@metrics.log_metrics
@sets_invalid_events_aside
def handler(event: dict[str, Any], _context: LambdaContext) -> None:
    """Serve the heartbeat of one forwarder."""
    message, runtime = decode(event), load_runtime()
    if runtime.admits(message):
        runtime.note(message.cluster, message.wake.at)
        tell(message.cluster, {"Heartbeats": 1})
