"""Heartbeat: records the time of each forwarder's last heartbeat."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.heartbeat.runtime import load_runtime
from shared.model.messages.message import decode
from shared.runtime.logs_and_metrics import emit_metrics, logger, metrics
from shared.runtime.serve_events import dead_letters_invalid_events


@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], _context: LambdaContext) -> None:
    """Serve the heartbeat of one forwarder."""
    message, runtime = decode(event), load_runtime()
    if runtime.admits(message):
        runtime.record_heartbeat(message.cluster, message.detail.at)
        emit_metrics(message.cluster, {"Heartbeats": 1})
