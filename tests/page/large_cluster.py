"""Writes a recording of a large cluster: so many nodes and pods, and so many changes a second.

    python -m tests.page.large_cluster FILE [--nodes 1000] [--pods 20000] [--seconds 20]

Nodes are of types of the embedded catalogue at its prices, and shown as the board shows real ones:
each change goes through it. Each message holds one change.
"""

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from functions.cli.watch.board import Board
from functions.cli.watch.recording import Recorder
from functions.cli.watch.view import OfferingPrices
from shared.instance_types.catalog import embedded_catalog
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, Offering
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod, Scheduling
from shared.model.resources import CPU, MEMORY, Resources
from shared.model.values import replace

CHANGES_A_SECOND: Final = 50
_TYPES: Final = (
    *("m5.xlarge", "m5.2xlarge", "c5.2xlarge", "r5.xlarge"),
    *("m5.4xlarge", "c5.xlarge", "r5.2xlarge"),
)
_WORKLOADS: Final = (
    *("cart", "checkout", "search", "catalogue", "images", "ledger", "mail", "orders"),
    *("payments", "reports", "sessions", "stock"),
)
_POOLS: Final = ("batch", "general", "gpu-free", "memory")
_MIB: Final = 2**20


class Cluster:
    """A board and what is on it, changed one object at a time."""

    def __init__(self, nodes: int, pods: int, now: datetime, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._now = now
        catalog = embedded_catalog()
        self.board = Board(OfferingPrices.of(catalog.instance_types))
        self._kinds = [kind for name in _TYPES if (kind := catalog.get(name)) is not None]
        self._numbers = itertools.count()
        self.nodes = [self._node() for _ in range(nodes)]
        self.room = {node.name: node.allocatable for node in self.nodes}
        self.pods: list[Pod] = []
        for node in self.nodes:
            self.board.put_node(None, node)
        sizes = [node.allocatable[CPU] for node in self.nodes]
        while len(self.pods) < pods:
            for node in self._random.choices(self.nodes, sizes, k=pods - len(self.pods)):
                self._place(node)
        self.board.next_change()

    def changes(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield so many messages of one change each: pods end and start, nodes come and go."""
        for number in range(count):
            turn = number % 25
            if turn == 0:
                self._add_node()
            elif turn == 12:
                self._remove_node()
            elif turn % 2:
                self._end_pod()
            else:
                self._place(self._random.choice(self.nodes))
            change = self.board.next_change()
            if change is not None:
                yield {"kind": "change", **change.to_plain()}

    def _node(self) -> Node:
        number = next(self._numbers)
        kind: InstanceType = self._random.choice(self._kinds)
        way: Offering = kind.offerings[number % len(kind.offerings)]
        name = f"ip-10-0-{number // 250}-{number % 250}.ec2.internal"
        return Node(
            name=name,
            uid=name,
            labels={
                keys.NODE_POOL: self._random.choice(_POOLS),
                keys.INSTANCE_TYPE: kind.name,
                keys.ZONE: way.zone,
                keys.CAPACITY_TYPE: way.capacity_type.value,
                keys.INITIALIZED: "true",
            },
            annotations={keys.SLOT: f"{name}/0/0"},
            finalizers=(keys.TERMINATION_FINALIZER,),
            provider_id=f"aws:///{way.zone}/i-{number:017x}",
            allocatable=kind.allocatable,
            ready=True,
            created_at=self._now - timedelta(hours=5) + timedelta(seconds=number),
        )

    def _add_node(self) -> None:
        node = self._node()
        labels = {**node.labels, keys.INITIALIZED: ""}
        coming = replace(node, labels=labels, ready=None, created_at=self._now)
        self.nodes.append(node)
        self.room[node.name] = node.allocatable
        self.board.put_node(None, coming)

    def _remove_node(self) -> None:
        node = self.nodes.pop(self._random.randrange(len(self.nodes)))
        for pod in [pod for pod in self.pods if pod.node_name == node.name]:
            self.pods.remove(pod)
            self.board.put_pod(pod, None)
        going = replace(node, annotations={keys.REMOVAL_REASON: "consolidation"})
        self.board.put_node(node, going)

    def _place(self, node: Node) -> None:
        """Put a pod on a node, if it has room."""
        number = next(self._numbers)
        cpu = self._random.choice((100, 200, 250, 400, 500))
        memory = cpu * self._random.choice((1, 2, 4)) * _MIB
        requests = Resources.from_mapping({CPU: cpu, MEMORY: memory, "pods": 1})
        if not requests.fits(self.room[node.name]):
            return
        self.room[node.name] = self.room[node.name] - requests
        workload = _WORKLOADS[self._random.randrange(len(_WORKLOADS)) % (4 + number % 9)]
        pod = Pod(
            namespace="shop",
            name=f"{workload}-{number}",
            uid=f"pod-{number}",
            scheduling=Scheduling(requests=requests),
            node_name=node.name,
            phase="Running",
            owner=ControllerRef(kind="ReplicaSet", name=workload, uid=workload),
            created_at=self._now,
        )
        self.pods.append(pod)
        self.board.put_pod(None, pod)

    def _end_pod(self) -> None:
        pod = self.pods.pop(self._random.randrange(len(self.pods)))
        self.room[pod.node_name] = self.room[pod.node_name] + pod.scheduling.requests
        self.board.put_pod(pod, None)


def write(path: Path, nodes: int, pods: int, seconds: float) -> None:
    """Write the recording."""
    now = datetime.now(UTC)
    cluster = Cluster(nodes, pods, now)
    with path.open("w", encoding="utf-8") as file:
        at = 0.0
        recorder = Recorder(file, lambda: at, lambda _: None, lambda: now + timedelta(seconds=at))
        whole = cluster.board.whole()
        price = whole.totals.price
        recorder.record(
            {
                "kind": "whole",
                "synced": True,
                "cluster": f"{nodes:,} nodes",
                **whole.to_plain(),
                "least": None,
                "notes": [],
                "decisions": [],
                "history": [[now.timestamp(), price, price, None, nodes]],
            }
        )
        for message in cluster.changes(round(seconds * CHANGES_A_SECOND)):
            at += 1 / CHANGES_A_SECOND
            price = message["totals"]["price"]
            recorder.record({**message, "point": [now.timestamp() + at, price, price, None, nodes]})


def main(arguments: list[str]) -> int:
    """Write a recording; return 0."""
    parser = argparse.ArgumentParser(description="Writes a recording of a large cluster.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args(arguments)
    write(given.file, given.nodes, given.pods, given.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
