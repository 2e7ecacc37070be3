"""The fake kubelet: nodes that become Ready and pods that run, on any API server."""

import asyncio
import math
from collections.abc import Coroutine, Iterable
from datetime import timedelta
from typing import Any, Final

from infra.local.sim.amounts import amounts, pod_requests
from infra.local.sim.client import ApiError, Json
from infra.local.sim.informer import Key, key_of
from infra.local.sim.kinds import LEASE, NODE, POD
from infra.local.sim.machines import GONE, RUNNING, Machines, Sizes
from infra.local.sim.matching import labels_of, matches_node_affinity
from infra.local.sim.reports import (
    completed_status,
    node_status,
    refused_status,
    running_status,
)
from infra.local.sim.view import is_finished
from infra.local.sim.workqueue import WorkQueue
from infra.local.sim.world import (
    World,
    annotation,
    is_terminating,
    is_true,
    node_of,
    seconds_of,
    stamp,
)

READY_AFTER: Final = "sim.dovetail.dev/ready-after"
NEVER_READY: Final = "sim.dovetail.dev/never-ready"
COMPLETE_AFTER: Final = "sim.dovetail.dev/complete-after"
SIMULATED: Final = (("karpenter.sh/provisioner-name", None), ("dovetail.dev/simulated", "true"))

_LEASES: Final = "kube-node-lease"
_LEASES_PER_SECOND: Final = 50


class Kubelet:
    """All fake kubelets of a cluster.

    Args:
        world: Shared caches.
        machines: Where the machines behind the nodes are looked up.
        sizes: What the machines hold.
        marks: Labels (key, value or None for any) of which a node must carry one to be ours.
    """

    def __init__(
        self,
        world: World,
        machines: Machines,
        sizes: Sizes,
        marks: Iterable[tuple[str, str | None]] = SIMULATED,
    ) -> None:
        self._world = world
        self._machines = machines
        self._sizes = sizes
        self._marks = tuple(marks)
        self._nodes: WorkQueue[str] = WorkQueue(self._node)
        self._pods: WorkQueue[Key] = WorkQueue(self._pod, parallel=16)
        self._leases: WorkQueue[str] = WorkQueue(self._renew, parallel=2)
        self._running_since: dict[str, float] = {}
        self._ready_at: dict[str, float] = {}
        self._addresses: dict[str, str] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._admitted: dict[str, tuple[str, dict[str, int], float]] = {}
        self._since: dict[tuple[str, str], float] = {}
        self._pod_count = 0
        world.nodes.subscribe(self._node_changed)
        world.pods.subscribe(self._pod_changed)

    def jobs(self) -> Iterable[Coroutine[Any, Any, None]]:
        """Return the work loops."""
        return self._nodes.run(), self._pods.run(), self._leases.run()

    def owns(self, node: Json) -> bool:
        """Return whether a node is simulated by this kubelet."""
        labels = labels_of(node)
        return any(key in labels and value in {None, labels[key]} for key, value in self._marks)

    # -- nodes ----------------------------------------------------------------------------

    def _node_changed(self, old: Json | None, new: Json | None) -> None:
        if new is None and old is not None:
            self._forget(old["metadata"]["uid"])
        elif new is not None and self.owns(new):
            self._nodes.add(new["metadata"]["name"])

    def _forget(self, uid: str) -> None:
        for place in (self._running_since, self._ready_at, self._addresses):
            place.pop(uid, None)
        self._used.pop(uid, None)

    async def _node(self, name: str) -> float | None:
        node = self._world.nodes.get(name)
        if node is None or not self.owns(node):
            return None
        uid = node["metadata"]["uid"]
        machine = await self._machines.find(node["spec"].get("providerID") or "", name)
        if machine.state != RUNNING:
            self._ready_at.pop(uid, None)
            return None if machine.state == GONE else self._world.timing.poll()
        now = asyncio.get_running_loop().time()
        if uid not in self._ready_at and not is_true(node, "Ready"):
            wait = self._boot_wait(node, now)
            if wait is None or wait > 0:
                return wait
        self._addresses[uid] = machine.address or _address(len(self._addresses))
        first = uid not in self._ready_at
        self._ready_at.setdefault(uid, now)
        await self._report(node, now)
        if first:
            self._leases.add(name)
            for pod in self._world.pods_on(name):
                self._pods.add(key_of(pod))
        return self._device_wait(node, now)

    def _boot_wait(self, node: Json, now: float) -> float | None:
        if annotation(node, NEVER_READY) is not None:
            return None
        timing = self._world.timing
        since = self._running_since.setdefault(node["metadata"]["uid"], now)
        boot = seconds_of(node, READY_AFTER)
        return since + timing.real(timing.boot_seconds if boot is None else boot) - now

    def _device_wait(self, node: Json, now: float) -> float | None:
        if not self._sizes.of(node).extended:
            return None
        timing = self._world.timing
        ready_at = self._ready_at[node["metadata"]["uid"]]
        wait = ready_at + timing.real(timing.device_plugin_seconds) - now
        return wait if wait > 0 else None

    async def _report(self, node: Json, now: float) -> None:
        with_devices = self._device_wait(node, now) is None
        size = self._sizes.of(node)
        status = node_status(node, size, self._addresses[node["metadata"]["uid"]], with_devices)
        actual = (node.get("status") or {}).get("allocatable") or {}
        missing = any(actual.get(k) != v for k, v in status["allocatable"].items())
        if missing or not is_true(node, "Ready"):
            await self._world.patch_status(NODE, node, status)

    async def _renew(self, name: str) -> float | None:
        node = self._world.nodes.get(name)
        if node is None or node["metadata"]["uid"] not in self._ready_at:
            return None
        machine = await self._machines.find(node["spec"].get("providerID") or "", name)
        if machine.state == GONE:
            self._ready_at.pop(node["metadata"]["uid"], None)
            return None
        timing = self._world.timing
        interval = max(
            timing.real(timing.lease_seconds),
            timing.least_lease_seconds,
            len(self._ready_at) / _LEASES_PER_SECOND,
        )
        lease = _lease(node, math.ceil(4 * interval))
        try:
            await self._world.client.patch(LEASE, lease, lease)
        except ApiError as error:
            if error.code != 404:
                raise
            await self._world.client.create(LEASE, lease)
        return interval

    # -- pods -----------------------------------------------------------------------------

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        if new is None or is_finished(new):
            self._release((new or old or {})["metadata"]["uid"])
        if new is not None and node_of(new):
            self._pods.add(key_of(new))

    def _release(self, uid: str) -> None:
        node_uid, requests, _ = self._admitted.pop(uid, ("", {}, 0.0))
        used = self._used.get(node_uid, {})
        for name, amount in requests.items():
            used[name] = used.get(name, 0) - amount
        for event in ("running", "stopping"):
            self._since.pop((uid, event), None)

    async def _pod(self, key: Key) -> float | None:
        pod = self._world.pods.objects.get(key)
        node = self._world.nodes.get(node_of(pod)) if pod else None
        if pod is None or node is None or node["metadata"]["uid"] not in self._ready_at:
            return None
        if is_terminating(pod):
            return await self._stop(pod)
        if is_finished(pod):
            return None
        if pod["metadata"]["uid"] not in self._admitted:
            refusal = self._admit(pod, node)
            if refusal is not None:
                await self._world.patch_status(POD, pod, refused_status(*refusal))
                return None
        if pod["status"].get("phase") != "Running":
            return await self._start(pod, node)
        return await self._complete(pod)

    def _admit(self, pod: Json, node: Json) -> tuple[str, str] | None:
        """Take a pod in, or return reason and message why there is no place for it."""
        requests = pod_requests(pod)
        node_uid = node["metadata"]["uid"]
        used = self._used.setdefault(node_uid, {})
        if (pod.get("status") or {}).get("phase") != "Running":
            if not matches_node_affinity(pod, node):
                return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match"
            capacity = amounts(node["status"].get("allocatable"))
            for resource, amount in sorted(requests.items()):
                if resource not in capacity:
                    why = f"Allocate failed due to no device plugin for {resource}"
                    return "UnexpectedAdmissionError", why
                if used.get(resource, 0) + amount > capacity[resource]:
                    counts = f"requested: {amount}, used: {used.get(resource, 0)}"
                    why = f"Node didn't have enough resource: {resource}, {counts}, "
                    return f"OutOf{resource}", f"{why}capacity: {capacity[resource]}"
        for resource, amount in requests.items():
            used[resource] = used.get(resource, 0) + amount
        now = asyncio.get_running_loop().time()
        self._admitted[pod["metadata"]["uid"]] = node_uid, requests, now
        return None

    async def _start(self, pod: Json, node: Json) -> float | None:
        timing = self._world.timing
        steps = 1 + len(pod["spec"].get("initContainers") or ())
        admitted_at = self._admitted[pod["metadata"]["uid"]][2]
        now = asyncio.get_running_loop().time()
        wait = admitted_at + timing.real(timing.pod_start_seconds) * steps - now
        if wait > 0:
            return wait
        self._pod_count += 1
        address = _address(self._pod_count, second_octet=128)
        host = self._addresses[node["metadata"]["uid"]]
        running = await self._world.patch_status(POD, pod, running_status(pod, address, host))
        return await self._complete(running)

    async def _complete(self, pod: Json) -> float | None:
        seconds = seconds_of(pod, COMPLETE_AFTER)
        if seconds is None:
            return None
        wait = self._remaining(pod, "running", self._world.timing.real(seconds))
        if wait > 0:
            return wait
        await self._world.patch_status(POD, pod, completed_status(pod))
        return None

    async def _stop(self, pod: Json) -> float | None:
        timing = self._world.timing
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        longest = min(timing.pod_stop_seconds, timedelta(seconds=grace).total_seconds())
        wait = self._remaining(pod, "stopping", timing.real(longest))
        if wait > 0:
            return wait
        await self._world.client.delete(POD, pod, grace_seconds=0)
        return None

    def _remaining(self, pod: Json, event: str, seconds: float) -> float:
        now = asyncio.get_running_loop().time()
        since = self._since.setdefault((pod["metadata"]["uid"], event), now)
        return since + seconds - now


def _lease(node: Json, seconds: int) -> Json:
    name = node["metadata"]["name"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    spec = {
        "holderIdentity": name,
        "leaseDurationSeconds": seconds,
        "renewTime": stamp(micros=True),
    }
    metadata = {"name": name, "namespace": _LEASES, "ownerReferences": [owner]}
    return LEASE.document(metadata, spec=spec)


def _address(number: int, second_octet: int = 0) -> str:
    return f"10.{second_octet + number // 65536 % 128}.{number // 256 % 256}.{number % 256}"
