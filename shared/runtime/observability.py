"""One logger and one set of metrics for every function.

Log keys: cluster, plan_id, node, provisioner, and the request's correlation id. Metrics go out as
EMF lines in namespace `Dovetail`.
"""

from aws_lambda_powertools import Logger, Metrics

NAMESPACE = "Dovetail"

logger = Logger()
metrics = Metrics(namespace=NAMESPACE)


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
