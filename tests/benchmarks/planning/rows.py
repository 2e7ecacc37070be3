"""Rows about whole decisions: grouping, scheduling, packing and handing out the pods."""

from collections.abc import Iterator
from typing import Final

from shared.packing.problem import PackingSettings
from tests.benchmarks.packing.workloads import PLAIN
from tests.benchmarks.planning import clusters
from tests.benchmarks.planning.deciding import SIZES, bound, classes_of, measure
from tests.benchmarks.report import Bar, Bought, Row
from tests.benchmarks.timing import StoppedError, within

_NAMES: Final = {
    "topo": "topo, decide",
    "classes": "skew, decide",
    "spread": "skew, zonal spreads, decide",
    "preferences": "preferences, decide",
}
BARS: Final = {
    "topo": Bar(gap_percent=6.0, milliseconds=1_000),
    "classes": Bar(gap_percent=0.8, milliseconds=250),
    "preferences": Bar(milliseconds=1_000),
}
_LIMIT_SECONDS: Final = 60


def decision_rows(*, quick: bool) -> Iterator[Row]:
    """Yield the rows; each decision is looked over for broken rules, which count as missed."""
    for case, count in SIZES.items():
        for pods in (100, 1_000, count) if case == "topo" else (count,):
            if quick and pods > 1_000:
                continue
            yield _row(case, pods, PLAIN, "plain", BARS.get(case) if pods == count else None)
    if not quick:
        yield _row("classes", SIZES["classes"], PackingSettings(), "default", None)


def _row(case: str, pods: int, settings: PackingSettings, named: str, bar: Bar | None) -> Row:
    snapshot = clusters.CLUSTERS[case](pods)
    classes = classes_of(snapshot)
    floor = bound(snapshot)
    try:
        found = within(_LIMIT_SECONDS, lambda: measure(snapshot, settings, budget_seconds=8))[0]
    except StoppedError:
        broken = f"stopped after {_LIMIT_SECONDS} s"
        ours = Bought(cost_micros_per_hour=0, nodes=0, milliseconds=None, broken=broken)
        floor = 0
    else:
        ours = Bought(
            cost_micros_per_hour=found.plan.cost_micros_per_hour,
            nodes=len(found.plan.nodes),
            milliseconds=found.milliseconds,
            left_out=len(found.plan.unschedulable),
            broken=", ".join(f"{name}: {n}" for name, n in sorted(found.broken.items())),
        )
    return Row(
        case=_NAMES[case],
        pods=pods,
        classes=classes,
        settings=named,
        bound_micros_per_hour=floor,
        ours=ours,
        bar=bar,
    )
