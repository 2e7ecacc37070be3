"""One logger and one set of metrics for every function.

Log keys: cluster, plan_id, node, provisioner, and the request's correlation id. Metrics go out as
EMF lines in namespace `Dovetail`.
"""

import functools
import json
import warnings
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.model.errors import InvalidMessageError
from shared.runtime.dead_letters import dead_letter

NAMESPACE = "Dovetail"

logger = Logger()
metrics = Metrics(namespace=NAMESPACE)
# An invocation that has nothing to count is no mistake.
warnings.filterwarnings("ignore", message="No application metrics to publish")

Handler = Callable[[dict[str, Any], LambdaContext], Any]


def count(name: str, value: float, *, unit: str = "Count", **dimensions: str) -> None:
    """Add one value to a metric.

    Args:
        name: CamelCase; the same name always with the same unit.
        unit: A CloudWatch unit.
        dimensions: Few and of few values; kept apart from the other metrics of the invocation.
    """
    metrics.add_metric(name=name, unit=unit, value=value)
    for key, text in dimensions.items():
        metrics.add_dimension(name=key, value=text)


def sets_invalid_events_aside(handler: Handler) -> Handler:
    """Return the handler, but an event that cannot be understood goes to the dead letters at once.

    Retries would change nothing. The state of a timer is no event: it fails its execution.
    """

    @functools.wraps(handler)
    def wrapped(event: dict[str, Any], context: LambdaContext) -> Any:
        try:
            return handler(event, context)
        except InvalidMessageError as error:
            if "detail-type" not in event:
                raise
            logger.exception("event cannot be understood", reason=str(error))
            count("DeadLetters", 1)
            dead_letter(json.dumps(event, default=str), str(error))
            return None

    return wrapped
