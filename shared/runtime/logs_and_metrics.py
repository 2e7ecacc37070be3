"""One logger and one set of metrics for every function.

Log keys: cluster, plan_id, node, provisioner, and the request's correlation id. Metrics go out as
EMF lines in namespace `Dovetail`.
"""

import contextlib
import functools
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import EphemeralMetrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.model.errors import InvalidMessageError, NotAttachedError, PermanentError
from shared.runtime.dead_letters import send_dead_letter

NAMESPACE = "Dovetail"
CLUSTER_DIMENSION: Final = "Cluster"
# Measurements, not counts: zero is a value like any other.
UNITS: Final[Mapping[str, str]] = {
    "DollarsPerHourBought": "None",
    "DollarsPerHourReleased": "None",
    "LongestWait": "Seconds",
    "PlanGap": "Percent",
}

logger = Logger()
metrics = Metrics(namespace=NAMESPACE)
# An invocation without metrics is not an error.
warnings.filterwarnings("ignore", message="No application metrics to publish")

Handler = Callable[[dict[str, Any], LambdaContext], Any]


@contextlib.contextmanager
def logged_to_stderr() -> Iterator[None]:
    """Log to standard error, apart from what a command prints."""
    handler = logger.registered_handler
    if not isinstance(handler, logging.StreamHandler):
        yield
        return
    # Not `setStream`: it flushes the old one, which may be closed by now.
    kept, handler.stream = handler.stream, sys.stderr
    try:
        yield
    finally:
        handler.stream = kept


def count(name: str, value: float) -> None:
    """Add one value to a metric that belongs to no cluster; the name is CamelCase."""
    metrics.add_metric(name=name, unit="Count", value=value)


def emit_metrics(cluster: str, values: Mapping[str, float]) -> None:
    """Print metrics of one cluster as one line of their own.

    Counts of zero are left out: a metric costs only in the hours in which it is written.

    Args:
        cluster: Its name, a dimension beside the function's.
        values: By metric name; the unit is that of `UNITS`, else a count.
    """
    kept = {name: value for name, value in values.items() if value or name in UNITS}
    if kept:
        print_metrics(cluster, kept)


def print_metrics(cluster: str, values: Mapping[str, float], *, service: str | None = None) -> None:
    """Print one line with metrics of one cluster, as they are given.

    Args:
        service: Value of the dimension `service`, if not the function's.
    """
    line_metrics = EphemeralMetrics(namespace=NAMESPACE, service=service)
    line_metrics.add_dimension(name=CLUSTER_DIMENSION, value=cluster)
    for name, value in sorted(values.items()):
        line_metrics.add_metric(name=name, unit=UNITS.get(name, "Count"), value=value)
    line_metrics.flush_metrics()


def dead_letters_invalid_events(handler: Handler) -> Handler:
    """Return the handler; an event that cannot be served goes to the dead-letter queue at once.

    It is invalid or names a cluster that is not attached: a retry would change nothing. The state
    of a timer is not an event: it fails its execution.
    """

    @functools.wraps(handler)
    def wrapped(event: dict[str, Any], context: LambdaContext) -> Any:
        try:
            return handler(event, context)
        except (InvalidMessageError, NotAttachedError) as error:
            if "detail-type" not in event:
                raise
            logger.exception("event put aside", reason=str(error))
            _send_to_dead_letters(event, str(error))
            return None

    return wrapped


def serve_each(
    event: Mapping[str, Any], names: Iterable[str], serve: Callable[[str], None]
) -> None:
    """Serve each node or instance of an event; an error in one does not stop the others.

    After permanent errors the event goes to the dead-letter queue, with the names of those it could
    not be served for, once no other is left to retry.

    Args:
        event: As it was received.
        names: Its nodes or instances.
        serve: Serves one of them; may be called again for each of them.

    Raises:
        Exception: The first error that is not permanent, after all were tried: the event must be
            retried.
    """
    retryable: list[Exception] = []
    permanent: list[str] = []
    for name in names:
        try:
            serve(name)
        except PermanentError as error:
            logger.exception("cannot be served", object=name, error=str(error))
            permanent.append(f"{name}: {error}")
        except Exception as error:  # noqa: BLE001 - raised below: the others are served first
            logger.warning("not served", object=name, error=str(error))
            retryable.append(error)
    if retryable:
        raise retryable[0]
    if permanent:
        _send_to_dead_letters(event, "; ".join(permanent))


def _send_to_dead_letters(event: Mapping[str, Any], reason: str) -> None:
    count("DeadLetters", 1)
    send_dead_letter(json.dumps(event, default=str), reason)
