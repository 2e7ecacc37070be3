"""Refresh catalog: writes the instance types of the Region with today's prices.

It also creates the service-linked roles of EC2 that the account lacks: it runs as soon as the stack
is complete, before anything is launched.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.refresh_catalog.runtime import RefreshCatalogRuntime, load_runtime
from shared.model.errors import AutoscalerError
from shared.model.messages.message import SCHEDULE
from shared.runtime.logs_and_metrics import count, logger, metrics


def _make_linked_roles(runtime: RefreshCatalogRuntime) -> None:
    """Create the service-linked roles of EC2; the catalogue is of use even if this fails."""
    try:
        for name in runtime.make_linked_roles():
            logger.info(f"service-linked role {name} made")
    except AutoscalerError as error:
        logger.warning(f"service-linked roles of EC2 cannot be made: {error}")


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Write the catalogue; an event of the schedule writes it only if it is missing or old."""
    runtime = load_runtime()
    if event.get("source") == SCHEDULE and runtime.is_fresh():
        logger.info("the catalogue is fresh")
        return
    _make_linked_roles(runtime)
    summary = runtime.refresh()
    count("CatalogInstanceTypes", summary.type_count)
    logger.info(
        "catalogue written",
        summary=str(summary),
        trigger=event.get("source", ""),
        request=context.aws_request_id,
    )
