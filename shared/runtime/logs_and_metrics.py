"""One logger and one set of metrics for every function.

Log keys: cluster, plan_id, node, provisioner, and the request's correlation id. Metrics go out as
EMF lines in namespace `Dovetail`.
"""

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import EphemeralMetrics

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
