"""Pods that arrive in batches: what is bought for one batch leaves room for the next."""

import random
from collections.abc import Callable, Iterator
from typing import Final

from shared.model.resources import Resources
from shared.packing.packer import pack
from shared.packing.problem import ItemClass, PackingSettings
from tests.benchmarks.packing import workloads
from tests.benchmarks.report import Bar, Bought, Row
from tests.benchmarks.timing import cpu_time

Buy = Callable[[list[workloads.Row], list[Resources]], int]
BARS: Final = {
    ("kmix", 100): Bar(gap_percent=4.0),
    ("skew", 100): Bar(gap_percent=5.0),
    ("kmix", 1_000): Bar(gap_percent=1.5),
    ("skew", 1_000): Bar(gap_percent=1.5),
}


def ours(settings: PackingSettings) -> Buy:
    """Return the packer as a buyer of one stream: what it is called with is kept up to date."""
    running = Resources()

    def buy(rows: list[workloads.Row], rooms: list[Resources]) -> int:
        nonlocal running
        bins = tuple(room for n, room in enumerate(rooms))
        asked = workloads.problem(rows, settings=settings, bins=bins, running=running)
        running += Resources.total(
            pod_class.requests.times(pod_class.count) for pod_class in asked.classes
        )
        every = (1 << len(bins)) - 1
        asked = workloads.with_bins(asked, every)
        made = pack(asked)
        assert not made.fallback
        for index, contents in made.placements:
            rooms[index] = rooms[index] - _total(asked.classes, contents)
        for node in made.nodes:
            used = _total(asked.classes, node.contents)
            rooms.append(asked.node_types[node.node_type].allocatable - used)
        return made.cost_micros_per_hour

    return buy


def run(rows: list[workloads.Row], batch: int, buy: Buy, seed: int = 1) -> tuple[int, int]:
    """Return what a stream costs, in micro-dollars per hour, and its nodes."""
    rows = list(rows)
    random.Random(seed).shuffle(rows)
    rooms: list[Resources] = []
    nodes = 0
    cost = 0
    for first in range(0, len(rows), batch):
        before = len(rooms)
        cost += buy(rows[first : first + batch], rooms)
        nodes += len(rooms) - before
        # Nodes too full for anything only cost time here.
        rooms[:] = [room for room in rooms if room["cpu"] >= 20 and room["memory"] >= 2**25]
    return cost, nodes


def stream_rows(*, quick: bool) -> Iterator[Row]:
    """Yield the rows about streams: CPU time is that of one batch, in the mean."""
    pods = 1_000 if quick else 10_000
    for name in ("kmix", "skew"):
        rows = workloads.WORKLOADS[name](pods)
        whole = pack(workloads.problem(rows))
        for batch in (10, 30, 100, 1_000):
            yield Row(
                case=f"{name}, batches of {batch:,}",
                pods=pods,
                classes=len(set(rows)),
                settings="plain",
                bound_micros_per_hour=whole.lower_bound_micros_per_hour,
                ours=_bought(rows, batch, ours(workloads.PLAIN)),
                bar=None if quick else BARS.get((name, batch)),
            )


def _bought(rows: list[workloads.Row], batch: int, buy: Buy) -> Bought:
    (cost, nodes), milliseconds = cpu_time(lambda: run(rows, batch, buy))
    batches = -(-len(rows) // batch)
    return Bought(cost_micros_per_hour=cost, nodes=nodes, milliseconds=milliseconds / batches)


def _total(classes: tuple[ItemClass, ...], contents: tuple[tuple[int, int], ...]) -> Resources:
    return Resources.total(classes[k].requests.times(n) for k, n in contents)
