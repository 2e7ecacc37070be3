"""What is seen of a run: pods and Nodes by watches, instances and processes each second."""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from infra.local.aws.clients import instances_of
from infra.local.cluster_simulator.client import Client, Json, Server
from infra.local.cluster_simulator.informer import Informer
from infra.local.cluster_simulator.kinds import EVENT, NODE, POD
from infra.local.loop_thread import LoopThread
from shared.manifests.nodes import decode_node
from shared.manifests.pods import PodDecoder
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod

_LOOK_SECONDS: Final = 1.0
_ALIVE: Final = ("pending", "running")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
# How Karpenter tells of a pod that it evicts, with the reason behind.
_EVICTED: Final = "Evicted pod: "


def now_micros() -> int:
    """Return the time of this machine's clock."""
    return int(time.time() * 1e6)


class Observer(LoopThread):
    """Looks until the end of the block.

    Attributes:
        pods, nodes: What happened: microsecond, former, new. Pods are those of the namespace
            `default`.
        instances: As they were seen last before their end, by id.
        ended: Microsecond at which each was first seen to terminate, by id.
        causes: Why pods were evicted, by name, as far as Events say it.
        memory: MiB that each group of processes has for itself, at each look.
    """

    def __init__(
        self, server: Server, ec2: Any, processes: Callable[[], Mapping[str, Iterable[int]]]
    ) -> None:
        """Prepare.

        Args:
            processes: Returns process ids by group.
        """
        super().__init__("observer")
        self.pods: list[tuple[int, Pod | None, Pod | None]] = []
        self.nodes: list[tuple[int, Node | None, Node | None]] = []
        self.instances: dict[str, Mapping[str, Any]] = {}
        self.ended: dict[str, int] = {}
        self.causes: dict[str, str] = {}
        self.memory: dict[str, list[float]] = defaultdict(list)
        self._server = server
        self._ec2 = ec2
        self._processes = processes
        self._cpu: dict[tuple[str, int], float] = {}
        self._decoder = PodDecoder()
        self._known_pods: dict[str, Pod] = {}
        self._known_nodes: dict[str, Node] = {}

    @property
    def alive(self) -> list[str]:
        """Return the ids of instances that are pending or running."""
        return [key for key in self.instances if key not in self.ended]

    @property
    def present(self) -> list[Pod]:
        """Return the pods there are."""
        return list(self._known_pods.values())

    def cpu_seconds(self) -> dict[str, float]:
        """Return the processor time of each group so far, with that of its ended processes."""
        found: dict[str, float] = defaultdict(float)
        for (group, _), seconds in list(self._cpu.items()):
            found[group] += seconds
        return dict(found)

    def serve(self) -> AbstractAsyncContextManager[Any]:
        return self._serve()

    @asynccontextmanager
    async def _serve(self) -> AsyncIterator[None]:
        async with Client(self._server) as client:
            informers = [Informer(kind, client) for kind in (POD, NODE, EVENT)]
            for informer, handler in zip(
                informers, (self._on_pod, self._on_node, self._on_event), strict=True
            ):
                informer.subscribe(handler)
            tasks = [asyncio.create_task(informer.run()) for informer in informers]
            tasks.append(asyncio.create_task(self._look_for_ever()))
            for informer in informers:
                await informer.synced.wait()
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    # --- watches

    def _on_pod(self, old: Json | None, new: Json | None) -> None:
        metadata = (new or old or {})["metadata"]
        if metadata["namespace"] != "default":
            return
        before = self._known_pods.pop(metadata["uid"], None)
        after = self._decoder.decode(new) if new is not None else None
        if after is not None:
            self._known_pods[after.uid] = after
        self.pods.append((now_micros(), before, after))

    def _on_node(self, old: Json | None, new: Json | None) -> None:
        uid = (new or old or {})["metadata"]["uid"]
        before = self._known_nodes.pop(uid, None)
        after = decode_node(new) if new is not None else None
        if after is not None:
            self._known_nodes[uid] = after
        self.nodes.append((now_micros(), before, after))

    def _on_event(self, _: Json | None, new: Json | None) -> None:
        if new is None or not (message := new.get("message") or "").startswith(_EVICTED):
            return
        self.causes[new["involvedObject"]["name"]] = message.removeprefix(_EVICTED)

    # --- looks

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Look at instances and processes once."""
        try:
            found = {one["InstanceId"]: one for one in instances_of(self._ec2)}
        except (BotoCoreError, ClientError):
            return
        now = now_micros()
        for key, instance in found.items():
            # What terminates loses its address and its name.
            if instance["State"]["Name"] in _ALIVE:
                self.instances[key] = instance
            elif key in self.instances:
                self.ended.setdefault(key, now)
        for key in self.instances.keys() - found.keys():
            self.ended.setdefault(key, now)
        for group, pids in self._processes().items():
            taken = [self._read(group, pid) for pid in pids]
            self.memory[group].append(sum(taken))

    def _read(self, group: str, pid: int) -> float:
        """Note the processor time of a process; return the MiB that it shares with none."""
        folder = Path("/proc") / str(pid)
        try:
            said = (folder / "stat").read_text("latin-1").rpartition(")")[2].split()
            pages = (folder / "statm").read_text("ascii").split()
        except OSError:
            return 0.0
        self._cpu[group, pid] = (int(said[11]) + int(said[12])) / _TICKS
        return (int(pages[1]) - int(pages[2])) * _PAGE / 2**20
