"""A week of a cluster with a stand-in for its autoscaler, as `dovetail shadow` would observe it.

python -m tests.unit.cli.shadow.week --pods 5000 --hours 168 --seconds 60 --state week.db

Replicas follow the hour of the day, jobs come at random. The stand-in launches nodes of one type
for pods that find no room, a minute later they join, and nodes that are empty for ten minutes go.
It consolidates nothing, as a Cluster Autoscaler whose nodes never fall below its threshold.
"""

import argparse
import math
import random
import resource
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from functions.cli.shadow.figures import shadow_figures
from functions.cli.shadow.fleet import Fleet, Observation
from functions.cli.shadow.record import About, ShadowRecord
from functions.cli.shadow.shadow_page import summary_lines
from functions.cli.shadow.simulation import ShadowRules
from functions.cli.shadow.step import step
from shared.instance_types.catalog import embedded_catalog
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod, Scheduling
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement
from shared.model.resources import Resources
from shared.model.values import replace
from tests import builders as make

BEGAN = make.NOW
ABOUT = About(cluster="https://test", prices="of a test")
_JOINS_AFTER = timedelta(minutes=1)
_EMPTY_FOR = timedelta(minutes=10)
_SIZES = ((250, 512), (500, 1024), (1000, 1024), (1500, 4096), (250, 2048))


class Cluster:
    """A cluster whose autoscaler knows one type of node.

    Args:
        pods: Number of pods in the mean of a day.
        kind: The type of its nodes.
    """

    def __init__(self, pods: int, kind: InstanceType, owner: Provisioner, seed: int = 1) -> None:
        self._rng = random.Random(seed)
        self._kind = kind
        self._owner = owner
        workloads = max(3, pods // 50)
        self._sizes: list[Scheduling] = [
            make.scheduling(cpu, memory * make.MIB, tolerations=make.DEFAULT_TOLERATIONS)
            for cpu, memory in (self._rng.choice(_SIZES) for _ in range(workloads))
        ]
        self._replicas = pods * 0.9 / workloads
        self._jobs = pods * 0.1
        self._nodes: dict[str, Node] = {}
        self._free: dict[str, Resources] = {}
        self._pods: dict[str, Pod] = {}
        self._of: dict[int, list[str]] = {number: [] for number in range(workloads)}
        self._ends: dict[str, datetime] = {}
        self._asked: list[datetime] = []
        self._empty: dict[str, datetime] = {}
        self._made = 0

    def at(self, now: datetime) -> Observation:
        """Return the cluster some time after it was last asked for."""
        joined = [asked for asked in self._asked if now - asked >= _JOINS_AFTER]
        self._asked = [asked for asked in self._asked if now - asked < _JOINS_AFTER]
        for asked in joined:
            self._join(asked + _JOINS_AFTER)
        self._scale(now)
        self._bind(now)
        self._remove_empty(now)
        return Observation(
            at=now,
            nodes=tuple(self._nodes.values()),
            pods=tuple(self._pods.values()),
            provisioners=(self._owner,),
        )

    def _scale(self, now: datetime) -> None:
        hours = (now - BEGAN) / timedelta(hours=1)
        wanted = self._replicas * (1 + 0.6 * math.sin(hours * math.pi / 12))
        for number, uids in self._of.items():
            while len(uids) < round(wanted):
                uids.append(self._come(f"w{number}", self._sizes[number], now))
            while len(uids) > round(wanted):
                self._leave(uids.pop(self._rng.randrange(len(uids))))
        for uid in [uid for uid, end in self._ends.items() if end <= now]:
            del self._ends[uid]
            self._leave(uid)
        if len(self._ends) < self._jobs and self._rng.random() < 0.5:
            lasts = timedelta(minutes=self._rng.randint(5, 240))
            self._ends[self._come("job", self._rng.choice(self._sizes), now)] = now + lasts

    def _come(self, name: str, scheduling: Scheduling, now: datetime) -> str:
        self._made += 1
        pod = make.pod(
            f"{name}-{self._made}", scheduling=scheduling, labels={"app": name}, created_at=now
        )
        self._pods[pod.uid] = pod
        return pod.uid

    def _leave(self, uid: str) -> None:
        pod = self._pods.pop(uid)
        if pod.node_name:
            self._free[pod.node_name] += pod.scheduling.requests

    def _bind(self, now: datetime) -> None:
        room = Resources()
        for uid, pod in self._pods.items():
            if pod.node_name:
                continue
            requests = pod.scheduling.requests
            name = next((n for n, free in self._free.items() if requests.fits(free)), "")
            if name:
                self._free[name] -= requests
                self._pods[uid] = replace(
                    pod, node_name=name, phase="Running", unschedulable=False, started_at=now
                )
            elif not self._asked or not requests.fits(room):
                self._asked.append(now)
                room = self._kind.allocatable - requests
            else:
                room -= requests

    def _join(self, at: datetime) -> None:
        self._made += 1
        name = f"real-{self._made}"
        found = make.node_of(name, self._kind, created_at=at, ready_changed_at=at)
        zone = make.ZONES[self._made % len(make.ZONES)]
        labels = {**self._kind.labels, **found.labels, keys.ZONE: zone}
        self._nodes[name] = replace(found, annotations={}, labels=labels)
        self._free[name] = self._kind.allocatable

    def _remove_empty(self, now: datetime) -> None:
        used = {pod.node_name for pod in self._pods.values()}
        self._empty = {n: self._empty.get(n, now) for n in self._nodes if n not in used}
        for name, since in list(self._empty.items()):
            if now - since >= _EMPTY_FOR:
                del self._nodes[name], self._free[name], self._empty[name]


def owner() -> Provisioner:
    """Return what the nodes are of: on demand, amd64, consolidated."""
    return make.provisioner(consolidation=True)


def observations(pods: int, hours: float, every: timedelta, seed: int = 1) -> list[Observation]:
    """Return a cluster of the catalogue of tests at equal times."""
    cluster = Cluster(pods, make.SHAPES["m5.2xlarge"], owner(), seed)
    count = int(timedelta(hours=hours) / every)
    return [cluster.at(BEGAN + number * every) for number in range(1, count + 1)]


def rules(every: timedelta, types: tuple[InstanceType, ...] = make.CATALOG) -> ShadowRules:
    """Return the rules of a record whose observations are so far apart."""
    return ShadowRules(instance_types=types, longest_pause=every)


def _general_types() -> tuple[InstanceType, ...]:
    return embedded_catalog().instance_types


def _owner_of_general() -> Provisioner:
    return make.provisioner(
        consolidation=True,
        also=(Requirement.of(keys.INSTANCE_CATEGORY, "c", "m", "r"),),
    )


def _at_times(cluster: Cluster, hours: float, every: timedelta) -> Iterator[Observation]:
    for number in range(1, int(timedelta(hours=hours) / every) + 1):
        yield cluster.at(BEGAN + number * every)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--state", type=Path, required=True)
    arguments = parser.parse_args()
    every, types = timedelta(seconds=arguments.seconds), _general_types()
    kind = next(found for found in types if found.name == "m5.4xlarge")
    cluster = Cluster(arguments.pods, kind, _owner_of_general())
    of_run = rules(every, types)
    record = ShadowRecord(arguments.state, make=True)
    record.begin(ABOUT)
    fleet, spent, slowest, most_nodes, most_pods = Fleet(), 0.0, 0.0, 0, 0
    for observed in _at_times(cluster, arguments.hours, every):
        began = time.process_time()
        made = step(fleet, observed, of_run)
        record.add(fleet, made)
        fleet = made.fleet
        took = time.process_time() - began
        spent, slowest = spent + took, max(slowest, took)
        most_nodes = max(most_nodes, len(observed.nodes))
        most_pods = max(most_pods, len(observed.pods))
        if observed.at.minute == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            size = arguments.state.stat().st_size / 2**20
            sys.stdout.write(
                f"{observed.at:%m-%d %H:%M} {len(observed.pods)} pods, {len(observed.nodes)} nodes "
                f"really, {sum(n.run.ended_at is None for n in fleet.nodes.values())} of the "
                f"fleet, {spent:.0f} s CPU (slowest step {slowest:.1f} s), {peak} MiB, "
                f"{size:.1f} MiB of state\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"at most {most_nodes} nodes and {most_pods} pods\n")
    found = record.recorded()
    sys.stdout.write("".join(f"{line}\n" for line in summary_lines(found, shadow_figures(found))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
