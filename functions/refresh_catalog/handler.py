"""Refresh catalog: writes what can be bought in the Region, with today's prices."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.runtime.bootstrap import refresh_runtime
from shared.runtime.observability import count, logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve the schedule; the event says nothing more."""
    summary = refresh_runtime().refresh()
    count("CatalogInstanceTypes", summary.type_count)
    logger.info(
        "catalogue written",
        summary=str(summary),
        trigger=event.get("source", ""),
        request=context.aws_request_id,
    )
