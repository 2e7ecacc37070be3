"""Metrics that functions print as embedded metric format lines.

Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/
CloudWatch_Embedded_Metric_Format_Specification.html (2026-11-21).
"""

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_KEPT = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSample:
    """One value of one metric under one set of dimensions."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    value: float
    unit: str
    at_millis: int


def parse_metrics(line: str) -> tuple[MetricSample, ...]:
    """Read the metrics of one log line; empty for any other line."""
    if '"_aws"' not in line or not line.startswith("{"):
        return ()
    try:
        document = json.loads(line)
        return tuple(_samples(document, document["_aws"]))
    except (ValueError, KeyError, TypeError):
        return ()


def _samples(document: Mapping[str, Any], header: Mapping[str, Any]) -> Iterator[MetricSample]:
    for directive in header["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            dimensions = tuple(sorted((name, str(document[name])) for name in names))
            for metric in directive["Metrics"]:
                values = document[metric["Name"]]
                for value in values if isinstance(values, list) else [values]:
                    yield MetricSample(
                        namespace=directive["Namespace"],
                        name=metric["Name"],
                        dimensions=dimensions,
                        value=float(value),
                        unit=metric.get("Unit", "None"),
                        at_millis=int(header["Timestamp"]),
                    )


class MetricStore:
    """The samples of this run, newest last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: deque[MetricSample] = deque(maxlen=_KEPT)

    def add(self, samples: tuple[MetricSample, ...]) -> None:
        """Remember samples."""
        with self._lock:
            self._samples.extend(samples)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._samples.clear()

    def summary(self, *, namespace: str | None, name: str | None) -> list[dict[str, Any]]:
        """Count, sum, minimum, maximum and last value per metric and dimensions, sorted."""
        groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[float]] = {}
        with self._lock:
            for sample in self._samples:
                if namespace in (None, sample.namespace) and name in (None, sample.name):
                    key = (sample.namespace, sample.name, sample.dimensions)
                    groups.setdefault(key, []).append(sample.value)
        return [
            {
                "namespace": key[0],
                "name": key[1],
                "dimensions": dict(key[2]),
                "count": len(values),
                "sum": sum(values),
                "min": min(values),
                "max": max(values),
                "last": values[-1],
            }
            for key, values in sorted(groups.items())
        ]
