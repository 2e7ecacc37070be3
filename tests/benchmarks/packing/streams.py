"""Pods that arrive in batches: what is bought for one batch leaves room for the next."""

import random
from collections.abc import Callable

from shared.model.resources import Resources
from shared.packing.packer import pack
from shared.packing.problem import Bin, PackingSettings, PodClass
from tests.benchmarks.packing import published, workloads

Buy = Callable[[list[workloads.Row], list[Resources]], int]


def ours(settings: PackingSettings) -> Buy:
    """Return the packer as a buyer: what it is called with is kept up to date."""

    def buy(rows: list[workloads.Row], rooms: list[Resources]) -> int:
        bins = tuple(Bin(name=str(n), available=room) for n, room in enumerate(rooms))
        asked = workloads.problem(rows, settings=settings, bins=bins)
        every = (1 << len(bins)) - 1
        asked = workloads.with_bins(asked, every)
        made = pack(asked)
        assert not made.fallback
        for index, contents in made.placements:
            rooms[index] = rooms[index] - _total(asked.classes, contents)
        for node in made.nodes:
            used = _total(asked.classes, node.contents)
            rooms.append(asked.shapes[node.shape].allocatable - used)
        return made.cost_micros_per_hour

    return buy


def v1(rows: list[workloads.Row], rooms: list[Resources]) -> int:
    """Buy with the v1 baseline."""
    return published.v1(workloads.problem(rows), rooms)[0]


def run(rows: list[workloads.Row], batch: int, buy: Buy, seed: int = 1) -> tuple[float, int]:
    """Return what a stream costs over the bound of the whole, in percent, and its nodes."""
    rows = list(rows)
    random.Random(seed).shuffle(rows)
    whole = pack(workloads.problem(rows)).lower_bound_micros_per_hour
    rooms: list[Resources] = []
    nodes = 0
    cost = 0
    for first in range(0, len(rows), batch):
        before = len(rooms)
        cost += buy(rows[first : first + batch], rooms)
        nodes += len(rooms) - before
        # Nodes too full for anything only cost time here.
        rooms[:] = [room for room in rooms if room["cpu"] >= 20 and room["memory"] >= 2**25]
    return (cost / whole - 1) * 100, nodes


def _total(classes: tuple[PodClass, ...], contents: tuple[tuple[int, int], ...]) -> Resources:
    return Resources.total(classes[k].requests.times(n) for k, n in contents)
