"""The whole simulated cluster beside one API server."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final, Self

from infra.local.cluster_simulator.client import Client, Server
from infra.local.cluster_simulator.controllers.autoscalers import Autoscalers
from infra.local.cluster_simulator.controllers.cloud import Cloud
from infra.local.cluster_simulator.controllers.cronjobs import CronJobs
from infra.local.cluster_simulator.controllers.daemonsets import DaemonSets
from infra.local.cluster_simulator.controllers.deployments import Deployments, ReplicaSets
from infra.local.cluster_simulator.controllers.disruption_budgets import Budgets
from infra.local.cluster_simulator.controllers.endpoint_slices import EndpointSlices
from infra.local.cluster_simulator.controllers.garbage import Garbage
from infra.local.cluster_simulator.controllers.node_lifecycle import NodeLifecycle
from infra.local.cluster_simulator.controllers.pod_garbage import PodGarbage
from infra.local.cluster_simulator.controllers.statefulsets_jobs import Jobs, StatefulSets
from infra.local.cluster_simulator.csi import CsiDriver
from infra.local.cluster_simulator.kubelet.kubelet import Kubelet
from infra.local.cluster_simulator.kubelet.registration import SIMULATED
from infra.local.cluster_simulator.machines import AssumedMachines, Machines, Sizes
from infra.local.cluster_simulator.scheduler.scheduler import Scheduler
from infra.local.cluster_simulator.volumes import VolumeControllers
from infra.local.cluster_simulator.world import Actor, Timing, World

PARTS: Final = (
    "kubelet",
    "cloud",
    "csi",
    "lifecycle",
    "scheduler",
    "volumes",
    "workloads",
    "pdb",
    "gc",
)

_STOP_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a simulation plays, and how.

    Attributes:
        parts: Which of `PARTS` to play.
        timing: How long things take.
        machines: Where the machines behind the nodes are; by default all of them run.
        sizes: What machines hold, by instance type.
        marks: Node labels of which one makes a node simulated (value None: any).
        discovers: Whether the kubelets of machines without a Node are simulated, too.
    """

    parts: frozenset[str] = frozenset(PARTS)
    timing: Timing = field(default_factory=Timing)
    machines: Machines = field(default_factory=AssumedMachines)
    sizes: Sizes = field(default_factory=Sizes)
    marks: tuple[tuple[str, str | None], ...] = SIMULATED
    discovers: bool = True


class Simulation:
    """Actors beside an API server, for `async with`; entering waits for the first lists.

    Raises:
        ValueError: A part is not one of `PARTS`.
    """

    def __init__(self, server: Server, setup: Setup | None = None) -> None:
        self._setup = setup or Setup()
        unknown = sorted(self._setup.parts - set(PARTS))
        if unknown:
            raise ValueError(f"parts: {unknown[0]!r} is unknown; choose from {', '.join(PARTS)}")
        self._server = server
        self._stack = AsyncExitStack()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        client = await self._stack.enter_async_context(Client(self._server))
        world = World(client, self._setup.timing)
        actors = list(_actors(world, self._setup, self._server))
        self._task = asyncio.create_task(_run(world, actors))
        synced = asyncio.create_task(world.wait_synced())
        await asyncio.wait({self._task, synced}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            synced.cancel()
            await self._stack.aclose()
            self._task.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._stack.aclose()

    async def wait(self) -> None:
        """Return only by an exception: the simulation runs until it is left."""
        assert self._task is not None
        await self._task


class SimulationThread:
    """A `Simulation` in a thread with a loop of its own, for `with` blocks and fixtures."""

    def __init__(self, server: Server, setup: Setup | None = None) -> None:
        self._simulation = Simulation(server, setup)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="simulation", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_STOP_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _main(self) -> None:
        try:
            asyncio.run(self._play())
        except Exception as error:  # noqa: BLE001 - a thread's outermost loop: its owner raises it
            self._failure = error
        finally:
            self._ready.set()

    async def _play(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._simulation:
            self._ready.set()
            await self._stop.wait()


async def _run(world: World, actors: Iterable[Actor]) -> None:
    async with asyncio.TaskGroup() as group:
        for actor in actors:
            for job in actor.jobs():
                group.create_task(job)
        group.create_task(world.run())


def _actors(world: World, setup: Setup, server: Server) -> Iterable[Actor]:
    makers: dict[str, Callable[[], Iterable[Actor]]] = {
        "kubelet": lambda: [
            Kubelet(
                world,
                setup.machines,
                setup.sizes,
                setup.marks,
                discovers=setup.discovers,
                server=server,
            )
        ],
        "cloud": lambda: [Cloud(world, setup.machines)],
        "csi": lambda: [CsiDriver(world, setup.sizes)],
        "volumes": lambda: [VolumeControllers(world)],
        "lifecycle": lambda: [NodeLifecycle(world)],
        "scheduler": lambda: [Scheduler(world)],
        "workloads": lambda: [
            kind(world)
            for kind in (
                *(Deployments, ReplicaSets, DaemonSets, StatefulSets),
                *(Jobs, CronJobs, Autoscalers, EndpointSlices),
            )
        ],
        "pdb": lambda: [Budgets(world)],
        "gc": lambda: [Garbage(world), PodGarbage(world)],
    }
    for part in PARTS:
        if part in setup.parts:
            yield from makers[part]()
