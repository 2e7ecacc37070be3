"""What the actors of the simulation share: client, caches, clock and times."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from infra.local.cluster_simulator.client import Client, Json
from infra.local.cluster_simulator.informer import Informer, Key, key_of
from infra.local.cluster_simulator.kinds import EVENT, NODE, POD, Kind
from infra.local.cluster_simulator.workqueue import KeyT, WorkQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things take, in seconds of simulated time; `speed` divides them all.

    Attributes:
        boot_seconds: Instance running until its kubelet reports Ready.
        registration_seconds: The last part of it: the kubelet runs and admits pods, but the API
            server has not answered yet; as long as that took on a busy machine.
        pod_start_seconds: Pod bound until Running, and again for each init container.
        pod_stop_seconds: Longest time a terminating pod takes, within its grace period.
        job_seconds: Pod of a Job running until it succeeded, unless an annotation says otherwise.
        device_plugin_seconds: Ready until extended resources show.
        volume_seconds: Node selected for a claim until its volume exists.
        attach_seconds: VolumeAttachment made until its volume is attached.
        detach_seconds: VolumeAttachment deleted until its volume is detached.
        force_detach_seconds: A volume is taken from a node that is not Ready after this.
        lease_seconds: Between two renewals of a node's lease; four of them missed make it Unknown.
        startup_grace_seconds: A node whose kubelet never reported becomes Unknown after this.
        quarantine_seconds: Pods of a Node that is gone are kept for this long at least.
        collection_seconds: Between two looks for such pods.
        least_lease_seconds: The lease is not renewed more often than this in real time, so that
            a busy machine does not lose nodes.
    """

    speed: float = 1.0
    boot_seconds: float = 28.0
    registration_seconds: float = 3.0
    pod_start_seconds: float = 2.0
    pod_stop_seconds: float = 1.0
    job_seconds: float = 10.0
    device_plugin_seconds: float = 5.0
    volume_seconds: float = 2.0
    attach_seconds: float = 3.0
    detach_seconds: float = 5.0
    force_detach_seconds: float = 360.0
    lease_seconds: float = 10.0
    startup_grace_seconds: float = 60.0
    quarantine_seconds: float = 40.0
    collection_seconds: float = 20.0
    least_lease_seconds: float = 5.0

    def real(self, simulated_seconds: float) -> float:
        """Return simulated seconds in real seconds."""
        return simulated_seconds / self.speed

    def poll(self) -> float:
        """Return how often, in real seconds, to look at what sends no events."""
        return min(max(self.real(5.0), 0.2), 2.0)


class World:
    """Shared caches, each reflected once however many actors look at it, and the actors' loops."""

    def __init__(self, client: Client, timing: Timing) -> None:
        self.client = client
        self.timing = timing
        self.pods_by_node: dict[str, dict[Key, Json]] = {}
        self.informers: dict[Kind, Informer] = {}
        self._loops: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self.informer(POD).subscribe(self._index_pod)

    def informer(self, kind: Kind) -> Informer:
        """Return the cache of a kind, making it when first asked for."""
        if kind not in self.informers:
            self.informers[kind] = Informer(kind, self.client)
        return self.informers[kind]

    def queue(
        self, handle: Callable[[KeyT], Awaitable[float | None]], *, parallel: int = 8
    ) -> WorkQueue[KeyT]:
        """Return a new queue whose keys are handled while the world runs; see `WorkQueue`."""
        queue = WorkQueue(handle, parallel=parallel)
        self.start(queue.run)
        return queue

    def start(self, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a loop of an actor while the world runs."""
        self._loops.append(loop)

    @property
    def nodes(self) -> Informer:
        return self.informer(NODE)

    @property
    def pods(self) -> Informer:
        return self.informer(POD)

    def pods_on(self, node_name: str) -> list[Json]:
        """Return the pods bound to a node, oldest first."""
        pods = self.pods_by_node.get(node_name, {}).values()
        return sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], *key_of(pod)))

    async def create(self, kind: Kind, obj: Json) -> Json:
        return self.informer(kind).observe(await self.client.create(kind, obj))

    async def patch(self, kind: Kind, obj: Json, change: Json, *, part: str = "") -> Json:
        """Merge-patch an object and put the answer in the cache."""
        answer = await self.client.patch(kind, obj, change, part=part)
        return self.informer(kind).observe(answer)

    async def patch_status(self, kind: Kind, obj: Json, status: Json) -> Json:
        """Patch the status of an object and put the answer in the cache."""
        return self.informer(kind).observe(await self.client.patch_status(kind, obj, status))

    async def replace_status(self, kind: Kind, obj: Json, status: Json) -> None:
        """Write changed status fields, refused by the server when the object moved meanwhile."""
        now = obj.get("status") or {}
        if any(now.get(key) != value for key, value in status.items()):
            version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            await self.patch(kind, obj, {"metadata": version, "status": status}, part="status")

    async def run(self) -> None:
        """Run all loops and reflect every kind asked for so far, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for loop in (*self._loops, *(informer.run for informer in self.informers.values())):
                group.create_task(loop())

    async def wait_synced(self) -> None:
        """Wait until every cache has its first list; optional kinds are not waited for."""
        for kind, informer in self.informers.items():
            if not kind.optional:
                await informer.synced.wait()

    def _index_pod(self, old: Json | None, new: Json | None) -> None:
        before = node_of(old) if old else ""
        after = node_of(new) if new else ""
        if before and before != after:
            pods = self.pods_by_node[before]
            pods.pop(key_of(old or {}), None)
            if not pods:
                del self.pods_by_node[before]
        if new and after:
            self.pods_by_node.setdefault(after, {})[key_of(new)] = new


def event_about(kind: Kind, obj: Json, component: str, name: str, **told: str) -> Json:
    """Return a new Event about an object.

    Args:
        name: Of the Event, unlike that of any other of this object.
        told: `type`, `reason` and `message`.
    """
    meta, now = obj["metadata"], stamp()
    return EVENT.document(
        {"name": f"{meta['name']}.{name}", "namespace": meta["namespace"]},
        involvedObject=kind.reference(obj, "resourceVersion"),
        source={"component": component},
        reportingComponent=component,
        firstTimestamp=now,
        lastTimestamp=now,
        count=1,
        **told,
    )


def node_of(pod: Json) -> str:
    """Return the name of the node a pod is bound to, empty while pending."""
    name: str = pod["spec"].get("nodeName") or ""
    return name


def is_terminating(obj: Json) -> bool:
    """Return whether an object's deletion was asked for."""
    return obj["metadata"].get("deletionTimestamp") is not None


def annotation(obj: Json, key: str) -> str | None:
    value: str | None = (obj["metadata"].get("annotations") or {}).get(key)
    return value


def seconds_of(obj: Json, key: str) -> float | None:
    """Return an annotation as seconds; one that is no number counts as absent."""
    try:
        return float(annotation(obj, key) or "")
    except ValueError:
        return None


def stamp(moment: datetime | None = None, *, micros: bool = False) -> str:
    """Return a time as Kubernetes writes it; now by default."""
    moment = moment or datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micros else "%Y-%m-%dT%H:%M:%SZ")


def age(text: str) -> timedelta:
    """Return how long ago a time written by Kubernetes is."""
    return datetime.now(UTC) - datetime.fromisoformat(text)
