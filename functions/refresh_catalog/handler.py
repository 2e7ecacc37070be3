"""Refresh catalog: writes what can be bought in the Region, with today's prices."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.refresh_catalog.runtime import load_runtime
from shared.messages.wake import SCHEDULE
from shared.runtime.observability import count, logger, metrics


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Write the catalogue; a tick of the schedule writes it only if it is missing or old."""
    runtime = load_runtime()
    if event.get("source") == SCHEDULE and runtime.is_fresh():
        logger.info("the catalogue is fresh")
        return
    summary = runtime.refresh()
    count("CatalogInstanceTypes", summary.type_count)
    logger.info(
        "catalogue written",
        summary=str(summary),
        trigger=event.get("source", ""),
        request=context.aws_request_id,
    )
