"""The whole simulated cluster beside one API server."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self

from infra.local.cluster_simulator.client import Client, Server
from infra.local.cluster_simulator.controllers.autoscalers import Autoscalers
from infra.local.cluster_simulator.controllers.cloud import Cloud
from infra.local.cluster_simulator.controllers.cronjobs import CronJobs
from infra.local.cluster_simulator.controllers.daemonsets import DaemonSets
from infra.local.cluster_simulator.controllers.deployments import Deployments, ReplicaSets
from infra.local.cluster_simulator.controllers.disruption_budgets import Budgets
from infra.local.cluster_simulator.controllers.endpoint_slices import EndpointSlices
from infra.local.cluster_simulator.controllers.garbage import Garbage, PodGarbage
from infra.local.cluster_simulator.controllers.node_lifecycle import NodeLifecycle
from infra.local.cluster_simulator.controllers.statefulsets_jobs import Jobs, StatefulSets
from infra.local.cluster_simulator.csi import CsiDriver
from infra.local.cluster_simulator.instances import AssumedInstances, Instances, Sizes
from infra.local.cluster_simulator.kubelet.kubelet import Kubelet
from infra.local.cluster_simulator.kubelet.registration import SIMULATED
from infra.local.cluster_simulator.scheduler.scheduler import Scheduler
from infra.local.cluster_simulator.volumes import VolumeControllers
from infra.local.cluster_simulator.world import Timing, World
from infra.local.loop_thread import LoopThread

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a simulation plays, and how.

    Attributes:
        parts: Which of `PARTS` to play.
        instances: Where the instances behind the nodes are; by default all of them run.
        marks: Node labels of which one makes a node simulated (value None: any).
        discovers: Whether the kubelets of instances without a Node are simulated, too.
    """

    parts: frozenset[str] = frozenset(PARTS)
    timing: Timing = field(default_factory=Timing)
    instances: Instances = field(default_factory=AssumedInstances)
    sizes: Sizes = field(default_factory=Sizes)
    marks: tuple[tuple[str, str | None], ...] = SIMULATED
    discovers: bool = True


class Simulation(AbstractAsyncContextManager["Simulation"]):
    """Actors beside an API server, for `async with`; entering waits for the first lists."""

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
        _populate(world, self._setup, self._server)
        self._task = asyncio.create_task(world.run())
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


class SimulationThread(LoopThread):
    """A `Simulation` in a thread."""

    def __init__(self, server: Server, setup: Setup | None = None) -> None:
        super().__init__("simulation")
        self._simulation = Simulation(server, setup)

    def serve(self) -> Simulation:
        return self._simulation


def _populate(world: World, setup: Setup, server: Server) -> None:
    """Make the actors of the parts: each subscribes to what it looks at."""
    kubelet = partial(Kubelet, instances=setup.instances, sizes=setup.sizes, marks=setup.marks)
    makers: dict[str, tuple[Callable[[World], object], ...]] = {
        "kubelet": (partial(kubelet, discovers=setup.discovers, server=server),),
        "cloud": (partial(Cloud, instances=setup.instances),),
        "csi": (partial(CsiDriver, sizes=setup.sizes),),
        "lifecycle": (NodeLifecycle,),
        "scheduler": (Scheduler,),
        "volumes": (VolumeControllers,),
        "workloads": (
            *(Deployments, ReplicaSets, DaemonSets, StatefulSets),
            *(Jobs, CronJobs, Autoscalers, EndpointSlices),
        ),
        "pdb": (Budgets,),
        "gc": (Garbage, PodGarbage),
    }
    for part in PARTS:
        for make in makers[part] if part in setup.parts else ():
            make(world)
