"""Rows about single plans: what the packer buys."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from shared.packing.packer import pack
from shared.packing.problem import PackingProblem, PackingSettings
from tests.benchmarks.packing import price_table, workloads
from tests.benchmarks.report import Bar, Bought, Row
from tests.benchmarks.timing import several

WALKTHROUGH: Final = {
    "S400": (400, 250, 256),
    "S100": (100, 1000, 1024),
    "S10": (10, 10_000, 10_240),
}
SIZES: Final = {
    "kmix": (100, 1_000, 10_000, 100_000),
    "skew": (100, 1_000, 10_000, 100_000),
    "vmlike": (100, 1_000, 10_000, 100_000),
    "unique": (100, 1_000, 10_000),
    "constr": (1_000, 10_000, 100_000),
    "gpumix": (100, 1_000, 10_000, 100_000),
}
POOLS: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "constr": price_table.any_arch,
    "gpumix": price_table.with_gpus,
}
BARS: Final = {
    ("kmix", 1_000): Bar(gap_percent=0.8, milliseconds=10),
    ("skew", 1_000): Bar(gap_percent=0.8, milliseconds=10),
    ("kmix", 10_000): Bar(gap_percent=0.6, milliseconds=25),
    ("skew", 10_000): Bar(gap_percent=0.8, milliseconds=250),
    ("kmix", 100_000): Bar(gap_percent=0.6),
    ("unique", 10_000): Bar(gap_percent=1.0, milliseconds=2_000),
    ("vmlike", 1_000): Bar(gap_percent=1.5, milliseconds=50),
    ("vmlike", 10_000): Bar(gap_percent=1.5, milliseconds=50),
    ("vmlike", 100_000): Bar(gap_percent=1.5, milliseconds=50),
    ("gpumix", 10_000): Bar(gap_percent=1.0, milliseconds=3_000),
}
BY_DEFAULT: Final = {
    "kmix": Bar(gap_percent=1.5, milliseconds=50),
    "skew": Bar(gap_percent=4.0, milliseconds=500),
}
PLAIN: Final = "plain"
QUICK_PODS: Final = 1_000


def optimum(asked: PackingProblem) -> int:
    """Return the least price for pods of one class, by dynamic programming over the pods left.

    Independent of the packer: every shape is looked at, nothing is left out beforehand.
    """
    (one,) = asked.classes
    ways = []
    for shape in asked.node_types:
        fit = min(max(shape.allocatable[name], 0) // amount for name, amount in one.requests.items)
        if fit:
            ways.append((fit, shape.offerings[0].price_micros_per_hour))
    least = [0]
    for n in range(1, one.count + 1):
        least.append(min(price + least[max(n - fit, 0)] for fit, price in ways))
    return least[-1]


def plan_rows(*, quick: bool) -> Iterator[Row]:
    """Yield the rows about single plans."""
    for name, (count, cpu, memory) in WALKTHROUGH.items():
        asked = workloads.problem(workloads.single(count, cpu, memory))
        bar = Bar(exact=optimum(asked), milliseconds=5)
        yield row(name, asked, PLAIN, bar=bar)
    for name, sizes in SIZES.items():
        for count in sizes:
            if quick and count > QUICK_PODS:
                continue
            rows = workloads.WORKLOADS[name](count)
            asked = workloads.problem(rows, POOLS.get(name, price_table.general))
            bar_of_size = BARS.get((name, count))
            yield row(name, asked, PLAIN, bar=bar_of_size)
    for name, bar in BY_DEFAULT.items():
        rows = workloads.WORKLOADS[name](QUICK_PODS if quick else 10_000)
        asked = workloads.problem(rows, settings=PackingSettings())
        counted = None if quick else bar
        yield row(name, asked, "default", bar=counted)
        spot = workloads.problem(rows, settings=PackingSettings(), capacity_type="spot")
        yield row(name, spot, "default, spot")
    if not quick:
        yield from whole_rows()


def row(name: str, asked: PackingProblem, settings: str, bar: Bar | None = None) -> Row:
    """Return one row."""
    made, milliseconds = several(lambda: pack(asked))
    return Row(
        case=name,
        pods=sum(pod_class.count for pod_class in asked.classes),
        classes=sum(1 for pod_class in asked.classes if pod_class.count),
        settings=settings,
        bound_micros_per_hour=made.lower_bound_micros_per_hour,
        ours=Bought(
            cost_micros_per_hour=made.cost_micros_per_hour,
            nodes=len(made.nodes),
            milliseconds=milliseconds,
            left_out=sum(pods for _, pods, _ in made.unplaced),
            broken=f"fallback: {made.fallback}" if made.fallback else "",
        ),
        bar=bar,
    )


def whole_rows(count: int = 100_000) -> Iterator[Row]:
    """Yield rows on plans from a list of pods to pods on nodes: grouping and binding included."""
    rows = workloads.kmix(count)
    times = []
    for _ in range(5):
        gc.collect()
        began = time.process_time()
        asked = workloads.problem(rows)
        made = pack(asked)
        waiting: dict[workloads.Row, list[int]] = {}
        for number, entry in enumerate(rows):
            waiting.setdefault(entry, []).append(number)
        queues = list(waiting.values())
        bound = [
            [queues[k].pop() for k, n in node.contents for _ in range(n)] for node in made.nodes
        ]
        times.append((time.process_time() - began) * 1000)
    assert sum(map(len, bound)) == count
    yield Row(
        case="kmix, pods to nodes",
        pods=count,
        classes=len(asked.classes),
        settings=PLAIN,
        bound_micros_per_hour=made.lower_bound_micros_per_hour,
        ours=Bought(
            cost_micros_per_hour=made.cost_micros_per_hour,
            nodes=len(made.nodes),
            milliseconds=statistics.median(times),
        ),
        bar=Bar(gap_percent=0.6, milliseconds=150),
    )


def other_seeds(seeds: range = range(2, 7)) -> Iterator[list[str]]:
    """Yield, per case with a bar on quality, what other seeds of it give."""
    for (name, count), bar in BARS.items():
        if count > 10_000 or bar.gap_percent is None:
            continue
        gaps, took = [], []
        for seed in seeds:
            rows = workloads.WORKLOADS[name](count, seed)
            asked = workloads.problem(rows, POOLS.get(name, price_table.general))
            made, milliseconds = several(lambda asked=asked: pack(asked), 0.5)  # type: ignore[misc]
            floor = made.lower_bound_micros_per_hour
            gaps.append(100 * (made.cost_micros_per_hour / floor - 1))
            took.append(milliseconds)
        missed = [
            *(["gap"] if max(gaps) > bar.gap_percent else []),
            *(["time"] if bar.milliseconds is not None and max(took) > bar.milliseconds else []),
        ]
        yield [
            name,
            f"{count:,}",
            f"{min(gaps):.2f} … {max(gaps):.2f}",
            f"{min(took):,.1f} … {max(took):,.1f}",
            str(bar),
            f"**no: {', '.join(missed)}**" if missed else "yes",
        ]
