"""Writes a recording of a large cluster, as the simulator plays it and `dovetail watch` shows it.

    python -m tests.page.simulated_cluster FILE [--nodes 1000]

Nothing in it is made up: Dovetail's own functions, timers and sweep decide, on a simulated Region
and cluster without faults, and what `dovetail watch` would have sent is recorded. Workloads grow in
three waves; then some shrink, and others grow beyond.
"""

import argparse
import gzip
import io
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from functions.cli.watch.cluster_watch import WatchedPod
from functions.cli.watch.live import LiveCluster
from functions.cli.watch.recording import Recorder
from shared.instance_types.catalog import embedded_catalog
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import LaunchIntent, Slot
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.nodes.launch.launch_results import LaunchResult, results_of_plan
from tests.builders import GIB, provisioner
from tests.simulation.aws.functions import cut
from tests.simulation.cluster.workloads import Workload
from tests.simulation.schedule.faults import CallFaults
from tests.simulation.schedule.scenario import ClusterScene, Scaling, Scene
from tests.simulation.schedule.world import World
from tests.unit.cli.watch.running import AtOnce, WatchedCluster, WorldRecords

NAME: Final = "shop"
SECONDS: Final = 250
_SECOND: Final = 1_000_000  # of the simulator's clock
_FAMILIES: Final = frozenset({"c5", "c6i", "m5", "m6i", "r5", "r6i"})
_SIZES: Final = ("xlarge", "4xlarge")
_PODS_PER_NODE: Final = 20
# Name, CPU in millicores, memory in GiB, share of the pods in percent.
_WORKLOADS: Final = (
    *(("cart", 200, 1, 12), ("checkout", 400, 1, 8), ("search", 900, 4, 7)),
    *(("catalogue", 200, 2, 12), ("images", 600, 1, 8), ("ledger", 450, 5, 7)),
    *(("mail", 100, 1, 8), ("orders", 350, 1, 10), ("payments", 400, 2, 8)),
    *(("reports", 1400, 8, 4), ("sessions", 150, 3, 10), ("stock", 250, 1, 6)),
)
# When how much of each workload runs, in percent; then some go down and others up.
_WAVES: Final = ((5, 55), (50, 80), (95, 100))
_LATER: Final = (
    *((130, "sessions", 40), (130, "mail", 30), (132, "images", 50), (134, "catalogue", 60)),
    *((172, "orders", 200), (173, "search", 170), (174, "checkout", 150)),
)
_BOUND_EVERY: Final = 60


class SimulatedRecords(WorldRecords):
    """What Dovetail has recorded in the simulator."""

    cluster = NAME

    def __init__(self, world: World) -> None:
        self.simulator = world

    def slots(self) -> tuple[Slot, ...]:
        return self.simulator.ledger.slots(NAME)

    def open_intents(self) -> tuple[LaunchIntent, ...]:
        return self.simulator.ledger.open_intents(NAME)

    def launch_results(self, plan_id: str) -> tuple[LaunchResult, ...]:
        return results_of_plan(self.simulator.ledger, NAME, plan_id)

    def decisions(self, day: str, after: str) -> tuple[str, ...]:
        return self.simulator.decisions.keys(f"decisions/{NAME}/{day}/", after)

    def document(self, key: str) -> bytes:
        return self.simulator.decisions.get(key)

    def instance_types(self) -> tuple[InstanceType, ...]:
        return self.simulator.scene.types


class Watching:
    """Shows a simulated cluster as `dovetail watch` does, step by step."""

    def __init__(self, world: World) -> None:
        self._api = world.apis[NAME]
        self._nodes: dict[str, Any] = {}
        self._pods: dict[str, Any] = {}
        self._cluster = WatchedCluster(*self._api.provisioner_values.values())
        self.live = LiveCluster(
            self._cluster,
            NAME,
            lambda: SimulatedRecords(world),
            world.scene.types,
            AtOnce(),
            world.kernel.now,
        )
        self._cluster.synced()
        self._of_nodes, self._of_pods, owners = self._cluster.watches
        owners.changed()

    def look(self, *, prove: bool) -> dict[str, Any] | None:
        """Read what has changed; return what the page is sent."""
        _report(self._nodes, dict(self._api.node_values), self._of_nodes.changed)
        pods = {key: WatchedPod(pod, "") for key, pod in self._api.pods.items()}
        _report(self._pods, pods, self._of_pods.changed)
        self.live._read_records()
        if prove:
            self.live._prove_bound()
        return self.live.next_change()


def _report(known: dict[str, Any], found: Mapping[str, Any], changed: Any) -> None:
    for key in known.keys() - found.keys():
        changed(known.pop(key), None)
    for key, value in found.items():
        before = known.get(key)
        if before is not value and before != value:
            changed(before, value)
            known[key] = value


def _pool(name: str, *sizes: str, **fields: Any) -> Provisioner:
    return provisioner(
        name,
        kind=OwnerKind.NODE_POOL,
        requirements=Requirements.of(
            (
                Requirement.of(keys.CAPACITY_TYPE, "spot", "on-demand"),
                Requirement.of(keys.ARCH, "amd64"),
                Requirement.of(keys.INSTANCE_SIZE, *sizes),
            )
        ),
        consolidation=True,
        consolidate_after=timedelta(seconds=30),
        **fields,
    )


def scene(nodes: int) -> Scene:
    """Return a cluster of so many nodes, about, and what its users do."""
    types = tuple(
        kind
        for kind in embedded_catalog().instance_types
        if kind.name.split(".")[0] in _FAMILIES and kind.name.split(".")[1] in _SIZES
    )
    large = _pool("large", "4xlarge", weight=10, limits=Resources.of(cpu=5600 * nodes))
    small = _pool("small", "xlarge")
    pods = nodes * _PODS_PER_NODE
    full = {name: pods * share // 100 for name, _, _, share in _WORKLOADS}
    scalings = [
        Scaling(at + 0.2 * number, name, full[name] * percent // 100)
        for at, percent in _WAVES
        for number, name in enumerate(full)
    ]
    scalings += [Scaling(at, name, full[name] * percent // 100) for at, name, percent in _LATER]
    workloads = tuple(
        Workload(name=name, cpu=cpu, memory=memory * GIB) for name, cpu, memory, _ in _WORKLOADS
    )
    cluster = ClusterScene(
        name=NAME, provisioners=(large, small), workloads=workloads, scalings=tuple(scalings)
    )
    return Scene(seed=7, clusters=(cluster,), types=types)


def _lost(text: str, reason: str) -> None:
    raise AssertionError(f"a message was given up: {reason}: {text}")


def write(path: Path, nodes: int, seconds: int) -> None:
    """Write the recording."""
    world = World(scene(nodes), CallFaults.only((), 0))
    watching = Watching(world)
    text = io.StringIO()
    at = 0
    recorder = Recorder(text, lambda: float(at), watching.live.decision, world.kernel.now)
    recorder.record(watching.live.whole())
    with cut(world.functions, _lost):
        for at in range(1, seconds + 1):
            world.kernel.run_until(at * _SECOND)
            message = watching.look(prove=at % _BOUND_EVERY == 0)
            if message is not None:
                recorder.record(message)
            if at % 10 == 0:
                totals = watching.live.whole()["totals"]
                sys.stderr.write(f"{at} s: {totals}\n")
        world.kernel.end()
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def main(arguments: list[str]) -> int:
    """Write a recording; return 0."""
    parser = argparse.ArgumentParser(description="Writes a recording of a simulated cluster.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    given = parser.parse_args(arguments)
    write(given.file, given.nodes, given.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
