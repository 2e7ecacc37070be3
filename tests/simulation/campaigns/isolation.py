"""A hostile cluster beside twenty others: what it costs them until pods are bound and swept for."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import fmean
from typing import Any, Final

from shared.model.errors import UnavailableError
from shared.model.messages.message import MessageKind, ObjectRef, encode, make_message
from tests.builders import provisioner
from tests.simulation.campaigns.hard_days import run
from tests.simulation.cluster.apiserver import ApiServer
from tests.simulation.cluster.workloads import FLOATING, Workload
from tests.simulation.schedule.faults import CallFaults
from tests.simulation.schedule.scenario import ClusterScene, Scaling, Scene
from tests.simulation.schedule.world import World

_SECOND: Final = 1_000_000
_SECONDS: Final = 300
_NEIGHBOURS: Final = 20
# First of all in the order of names.
_HOSTILE: Final = "a-hostile"
_READS: Final = ("pending_pods", "nodes", "bound_pods", "pods_on", "node", "provisioners")
_FORGED: Final = (
    MessageKind.POD_PENDING,
    MessageKind.NODE_EMPTY,
    MessageKind.NODE_READY,
    MessageKind.NODE_DELETED,
    MessageKind.HEARTBEAT,
    MessageKind.SWEEP,
)
_TARGETS: Final = {
    MessageKind.NODE_EMPTY: "emptiness",
    MessageKind.NODE_READY: "bind",
    MessageKind.NODE_DELETED: "termination",
    MessageKind.HEARTBEAT: "sweep",
    MessageKind.SWEEP: "sweep",
}


@dataclass(frozen=True)
class Times:
    """Mean times of the neighbours.

    Attributes:
        bound_seconds: From when a pod was made until it was bound.
        swept_seconds: From the minute's tick until the cluster was swept.
        pods: How many were bound.
        sweeps: How many were made.
    """

    bound_seconds: float
    swept_seconds: float
    pods: int
    sweeps: int


@dataclass
class _Bindings:
    """Watches one cluster: when each of its pods was made and bound."""

    api: ApiServer
    made: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        for pod in self.api.pods.values():
            made = self.made.setdefault(pod.uid, self.api.kernel.time)
            if pod.node_name and pod.uid not in self.seconds:
                self.seconds[pod.uid] = (self.api.kernel.time - made) / _SECOND


def neighbours(*, hostile: bool) -> Times:
    """Run twenty clusters that scale up and down, and one more.

    Args:
        hostile: Whether that one is slow, away, raises anything and forges messages; else it is
            like the others.
    """
    names = [f"good-{number:02}" for number in range(_NEIGHBOURS)]
    scene = Scene(seed=7, clusters=tuple(map(_cluster, range(99), (_HOSTILE, *names))))
    world = World(scene, CallFaults.only((), 0))
    watchers = [_Bindings(world.apis[name]) for name in names]
    for watcher in watchers:
        watcher.api.watched.append(watcher.look)
    swept = _watch_sweeps(world, names)
    if hostile:
        _spoil(world, names)
    run(world, _SECONDS)
    bound = [seconds for watcher in watchers for seconds in watcher.seconds.values()]
    return Times(fmean(bound), fmean(swept), len(bound), len(swept))


def _cluster(number: int, name: str) -> ClusterScene:
    start = 3 + 2 * number
    return ClusterScene(
        name=name,
        provisioners=(provisioner(ttl_after_empty=timedelta(seconds=30)),),
        workloads=(Workload(name="web", kind=FLOATING, cpu=1500),),
        scalings=tuple(
            Scaling(start + 60 * turn, "web", replicas)
            for turn, replicas in enumerate((4, 9, 2, 12))
        ),
    )


def _watch_sweeps(world: World, names: list[str]) -> list[float]:
    """Return a list to which the time of each sweep of a neighbour will be added."""
    found: list[float] = []
    ticks: list[int] = []
    runtime = world.functions.runtimes["sweep"]
    clusters, service = runtime.clusters, runtime.service

    def ticking() -> Any:
        ticks.append(world.kernel.time)
        return clusters()

    def watched(cluster: str) -> Any:
        sweeping = service(cluster)
        run_once = sweeping.run

        def timed() -> Any:
            report = run_once()
            if cluster in names:
                found.append((world.kernel.time - ticks[-1]) / _SECOND)
            return report

        sweeping.run = timed
        return sweeping

    runtime.clusters, runtime.service = ticking, watched
    return found


def _spoil(world: World, names: list[str]) -> None:
    api = world.apis[_HOSTILE]
    world.functions.expected = (ValueError, MemoryError)
    for method in _READS:
        setattr(api, method, _spoilt(world, getattr(api, method)))
    numbers = itertools.count()

    def forge() -> None:
        number = next(numbers)
        victim = names[number % len(names)]
        nodes = [ObjectRef(name=name) for name in sorted(world.apis[victim].node_values)[:200]]
        for kind in _FORGED:
            event = encode(make_message(kind, victim, world.kernel.now(), objects=nodes))
            event["source"] = f"dovetail.{_HOSTILE}"
            if kind in _TARGETS:
                world.delivery.invoke(_TARGETS[kind], event)
            else:
                world.delivery.send(json.dumps(event), 0)
        own = make_message(MessageKind.POD_PENDING, _HOSTILE, world.kernel.now(), leading=True)
        world.delivery.publish(own)
        world.kernel.after(0.5, forge)

    world.kernel.after(1, forge)


def _spoilt(world: World, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that does a different thing each time it is called."""
    ways = itertools.cycle(("slow", "value", "memory", "away"))

    def called(*args: Any, **more: Any) -> Any:
        match next(ways):
            case "value":
                raise ValueError("what no decoder expected")
            case "memory":
                raise MemoryError
            case "away":
                world.kernel.pause(15 * _SECOND)
                raise UnavailableError("no answer")
        world.kernel.pause(14 * _SECOND)
        return method(*args, **more)

    return called
