"""What settings of small batches cost over a day: pods come and go, nodes are consolidated.

python -m tests.benchmarks.planning.days [--hours 24] [--seeds 1] [--write FILE]

Pods come in batches of one size, by day more often than by night; each stays for a time of its own.
Each batch is decided for as it comes, on the nodes that are there. Every ten minutes nodes are
consolidated, within the default limits. What is summed up is what all nodes cost while they are
there, a replaced node for as long as its replacement boots.
"""

import argparse
import heapq
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from shared.disruption.candidates import node_prices
from shared.disruption.consolidation import ConsolidationCommand, DisruptionMethod, consolidate
from shared.disruption.settings import SAVING_ALONE
from shared.disruption.simulate import by_price
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod, Scheduling
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from tests import builders as make
from tests.benchmarks.packing import workloads
from tests.benchmarks.planning.clusters import general_types
from tests.benchmarks.report import machine, markdown

_MINUTE: Final = 1 / 60
_LOOK: Final = 10 * _MINUTE  # hours between two looks of consolidation
_BOOT: Final = 2 * _MINUTE
_STAYS: Final = 3.0  # hours, in the mean
_SWING: Final = 0.6  # how much more comes at noon than in the mean
_FAMILIES: Final = frozenset({"c6a", "m6a", "r6a"})
_DISRUPTION: Final = replace(SAVING_ALONE, max_simulations=12)
SETTINGS: Final[tuple[tuple[int, int], ...]] = (
    *((0, 0), (50, 0), (90, 0)),
    *((0, 1), (90, 1)),
)


def alone(size: int) -> Callable[[random.Random], int]:
    """Return batches of one size."""
    return lambda _: size


def mixed(rng: random.Random) -> int:
    """Return the size of a batch: a fifth of all pods come alone, the others up to sixty."""
    # A batch of several has 9.3 pods in the mean: 70 % lone batches are 20 % lone pods.
    return 1 if rng.random() < 0.7 else min(2 + round(rng.lognormvariate(1.6, 0.9)), 60)


class Stream(NamedTuple):
    """Pods that come.

    Attributes:
        rows: Their sizes, for a count and a seed.
        batch: How many come at a time, and `mean` of that.
        pods: At a time, in the mean.
    """

    name: str
    rows: Callable[[int, int], list[workloads.Row]]
    batch: Callable[[random.Random], int]
    mean: float
    pods: int = 160


STREAMS: Final = (
    *(
        Stream(f"{name}, {size}", rows, alone(size), size)
        for name, rows in (("kmix", workloads.kmix), ("skew", workloads.skew))
        for size in (1, 2, 5, 10, 30)
    ),
    Stream("skew, a fifth alone", workloads.skew, mixed, 3.5),
    *(
        Stream(f"{name}, {size}, quiet", rows, alone(size), size, pods=25)
        for name, rows in (("kmix", workloads.kmix), ("skew", workloads.skew))
        for size in (1, 2)
    ),
)


def machines() -> tuple[InstanceType, ...]:
    """Return three families in all sizes up to 24xlarge, in one zone."""
    return tuple(
        replace(known, offerings=tuple(way for way in known.offerings if way.zone == make.ZONES[0]))
        for known in general_types()
        if known.labels[keys.INSTANCE_FAMILY] in _FAMILIES and known.capacity["cpu"] <= 96_000
    )


@dataclass(slots=True)
class Day:
    """A cluster over a day.

    Attributes:
        spent: Micro-dollars.
        bought: Nodes for batches; `replaced` counts those that consolidation removed.
    """

    types: tuple[InstanceType, ...]
    settings: PackingSettings
    now: float = 0.0
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    spent: float = 0.0
    bought: int = 0
    replaced: int = 0
    price: int = 0
    number: int = 0

    def until(self, hour: float) -> None:
        """Let time pass."""
        self.spent += self.price * (hour - self.now)
        self.now = hour

    def come(self, batch: Sequence[Pod]) -> None:
        """Decide for pods that wait."""
        plan = decide(self._seen(batch), self.settings)
        assert not plan.unschedulable
        self.bought += len(plan.nodes)
        self._place({pod.uid: pod for pod in batch}, plan)

    def look(self) -> None:
        """Consolidate once, and remove what is empty before that."""
        # As it is asked in a cluster: the pods are not new ones.
        packing = by_price(replace(self.settings, growth_percent=0, fewer_nodes_permille=0))
        most = _DISRUPTION.most_nodes(len(self.nodes))
        for _ in range(2):
            found = consolidate(self._seen(()), (), _DISRUPTION, packing, most_nodes=most).best
            if found is not None:
                self._change(found)
            if found is None or found.method != DisruptionMethod.EMPTY:
                break

    def _change(self, change: ConsolidationCommand) -> None:
        gone = {name: self.nodes.pop(name) for name in change.remove}
        before = self.price
        moving = {pod.uid: pod for pod in self.pods.values() if pod.node_name in gone}
        self._place(moving, change.plan)
        self.replaced += len(gone)
        if change.plan.nodes:
            self.spent += (before + change.plan.cost_micros_per_hour - self.price) * _BOOT

    def _place(self, waiting: dict[str, Pod], plan: Plan) -> None:
        places = {ref.uid: placed.node for placed in plan.placements for ref in placed.pods}
        for planned in plan.nodes:
            name = self._launch(planned)
            places.update((ref.uid, name) for ref in planned.pods)
        for uid, pod in waiting.items():
            self.pods[uid] = replace(
                pod, node_name=places[uid], phase="Running", unschedulable=False
            )
        self._reckon()

    def leave(self, uid: str) -> None:
        """Let a pod end."""
        del self.pods[uid]

    def _launch(self, planned: PlannedNode) -> str:
        bought = planned.options[0].offering
        shape = next(known for known in self.types if known.name == bought.instance_type)
        self.number += 1
        name = f"n{self.number:05}"
        labels = {
            **shape.labels,
            keys.PROVISIONER_NAME: "default",
            keys.ZONE: bought.zone,
            keys.CAPACITY_TYPE: bought.capacity_type.value,
            keys.HOSTNAME: name,
            keys.INITIALIZED: "true",
        }
        self.nodes[name] = make.node(
            name,
            labels=labels,
            capacity=shape.capacity,
            allocatable=shape.allocatable,
            created_at=make.NOW + timedelta(hours=self.now),
        )
        return name

    def _reckon(self) -> None:
        self.price = sum(node_prices(self._seen(())).values())

    def _seen(self, batch: Sequence[Pod]) -> ClusterSnapshot:
        return make.snapshot(
            *sorted(batch, key=lambda pod: pod.key),
            nodes=tuple(self.nodes.values()),
            bound=tuple(self.pods.values()),
            provisioners=(make.provisioner(consolidation=True),),
            sites=(make.site(zones=make.ZONES[:1]),),
            instance_types=self.types,
            daemonsets=_DAEMONS,
            taken_at=make.NOW + timedelta(hours=self.now),
        )


_DAEMONS: Final = tuple(make.daemonset(f"d{n}", cpu=70, memory=80 * 2**20) for n in range(4))


def live(stream: Stream, settings: PackingSettings, hours: float, seed: int) -> Day:
    """Return a cluster after some hours of a stream; its first pods come all at once."""
    rng = random.Random(seed)
    rows = iter(stream.rows(10_000, seed))
    known: dict[Scheduling, Scheduling] = {}
    numbers = iter(range(10**6))
    day = Day(types=machines(), settings=settings)
    ends: list[tuple[float, str]] = []

    def batch(count: int) -> list[Pod]:
        found = []
        for number, (cpu, memory, *_) in zip(range(count), rows, strict=False):
            del number
            asked = make.scheduling(cpu, memory * 2**20, tolerations=make.DEFAULT_TOLERATIONS)
            pod = make.pod(f"p{next(numbers):06}", scheduling=known.setdefault(asked, asked))
            heapq.heappush(ends, (day.now + rng.expovariate(1 / _STAYS), pod.uid))
            found.append(pod)
        return found

    day.come(batch(stream.pods))
    day.bought = 0
    looks, comes = _LOOK, 0.0
    while True:
        comes += rng.expovariate(stream.pods * _rate(comes) / stream.mean)
        while min(looks, ends[0][0]) < comes:
            if min(looks, ends[0][0]) > hours:
                break
            if looks < ends[0][0]:
                day.until(looks)
                day.look()
                looks += _LOOK
            else:
                hour, uid = heapq.heappop(ends)
                day.until(hour)
                day.leave(uid)
        if comes > hours:
            day.until(hours)
            return day
        day.until(comes)
        day.come(batch(stream.batch(rng)))


def _rate(hour: float) -> float:
    """Return how many pods come in an hour, as a part of those that are there in the mean."""
    return 1 / _STAYS * (1 + _SWING * math.sin((hour - 8) / 12 * math.pi))


def rows_of(streams: Sequence[Stream], hours: float, seeds: int) -> Iterator[tuple[str, ...]]:
    """Yield, for each stream, what a day costs under each setting, and how it differs."""
    for stream in streams:
        costs = []
        for leftover, growth in SETTINGS:
            settings = PackingSettings(leftover_value_percent=leftover, growth_percent=growth)
            began = time.process_time()
            days = [live(stream, settings, hours, seed) for seed in range(1, seeds + 1)]
            costs.append(sum(day.spent for day in days) / seeds / 1_000_000)
            sys.stderr.write(
                f"{stream.name} {leftover} {growth}: ${costs[-1]:.2f}, "
                f"{sum(day.bought for day in days)} bought, "
                f"{sum(day.replaced for day in days)} replaced, "
                f"{time.process_time() - began:.0f} CPU s\n"
            )
        first = costs[0]
        yield stream.name, f"{first:.2f}", *(f"{100 * (cost / first - 1):+.1f}" for cost in costs)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="streams whose names have this in them")
    parser.add_argument("--write", type=Path, help="file to write; prints otherwise")
    given = parser.parse_args()
    chosen = [stream for stream in STREAMS if given.only in stream.name]
    heads = [f"{leftover}, {growth}" for leftover, growth in SETTINGS]
    table = markdown(
        ("pods of, at a time", "$ a day at 0, 0", *heads),
        list(rows_of(chosen, given.hours, given.seeds)),
    )
    text = "\n".join([machine(), "", *table, ""])
    if given.write is None:
        sys.stdout.write(text)
    else:
        given.write.write_text(text)


if __name__ == "__main__":
    main()
