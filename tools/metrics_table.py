"""Writes the tables of docs/operations/metrics.md from the metrics that the functions print.

python -m tools.metrics_table
"""

import sys
from pathlib import Path
from typing import Final

from infra.aws.metrics import METRICS, DashboardGraph, MetricSpec
from shared.runtime.logs_and_metrics import UNITS
from tools.made_part import replaced

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "operations" / "metrics.md"
MARKS: Final = ("<!-- made by tools/metrics_table.py -->", "<!-- end -->")
_HEAD: Final = "| metric | function | statistic | unit | what to do |\n|---|---|---|---|---|"
_OF_NONE: Final = "Of no cluster"
# Amounts of money have no unit in CloudWatch.
_DOLLARS: Final = "None"


def tables() -> str:
    """Return the metrics as Markdown: a table for each graph of a dashboard, then the others."""
    parts = [
        (topic.value, [metric for metric in METRICS if metric.graph is topic])
        for topic in DashboardGraph
    ]
    parts.append((_OF_NONE, [metric for metric in METRICS if metric.graph is None]))
    return "\n\n".join(
        "\n".join((f"## {title}\n", _HEAD, *map(_row, metrics))) for title, metrics in parts
    )


def _row(metric: MetricSpec) -> str:
    unit = UNITS.get(metric.name, "Count")
    shown = "dollars per hour" if unit == _DOLLARS else unit
    cells = (f"`{metric.name}`", f"`{metric.service}`", metric.statistic, shown, metric.action)
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replaced(page, tables(), MARKS), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
