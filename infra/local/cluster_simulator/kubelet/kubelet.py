"""The simulated kubelet: registers its Node, reports its status, and runs pods, on any API server.

Pods are admitted against the Node as the kubelet last saw it, also before the kubelet is
registered: a Node without allocatable amounts has room for no pod.
Source: https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/kubelet (config/apiserver.go,
kubelet_getters.go:getNodeAnyWay, lifecycle/predicate.go), read 2026-11-22.
"""

import asyncio
import logging
import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from infra.local.cluster_simulator.client import ApiError, Json, Server
from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.instances import (
    ENDING,
    GONE,
    RUNNING,
    Instance,
    Instances,
    Sizes,
)
from infra.local.cluster_simulator.kinds import ATTACHMENT, CLAIM, LEASE, NODE, POD, VOLUME
from infra.local.cluster_simulator.kubelet.admission import Process, refusal_of
from infra.local.cluster_simulator.kubelet.devices import Devices, is_plugin
from infra.local.cluster_simulator.kubelet.registration import (
    LONGEST_RETRY_SECONDS,
    SIMULATED,
    forbidden_labels,
    initial_node,
    register,
)
from infra.local.cluster_simulator.kubelet.status import (
    completed_status,
    first_status,
    node_status,
    refused_status,
    running_status,
)
from infra.local.cluster_simulator.kubelet.user_data import UnusableUserDataError, read_user_data
from infra.local.cluster_simulator.rules.amounts import pod_requests
from infra.local.cluster_simulator.rules.matching import is_finished, is_true, labels_of
from infra.local.cluster_simulator.volumes import are_attached
from infra.local.cluster_simulator.world import (
    World,
    annotation,
    is_terminating,
    node_of,
    seconds_of,
    stamp,
)

READY_AFTER: Final = "sim.dovetail.dev/ready-after"
NEVER_READY: Final = "sim.dovetail.dev/never-ready"
# A kubelet that has started says and does nothing while its Node has this annotation, whatever the
# value: its process has ended. Without it the kubelet starts again, as after a reboot.
STOPPED: Final = "sim.dovetail.dev/kubelet-stopped"
COMPLETE_AFTER: Final = "sim.dovetail.dev/complete-after"

_LOG = logging.getLogger(__name__)
_LEASES: Final = "kube-node-lease"
_LEASES_PER_SECOND: Final = 50


class Kubelet:
    """All simulated kubelets of a cluster.

    Args:
        marks: Labels (key, value or None for any) of which a node must carry one to be simulated.
        discovers: Whether a running instance is simulated before its Node exists. Must be false
            beside other kubelets: both kubelets of a instance would register it.
        server: The API server that is being simulated: a kubelet whose user data names another
            does not reach it.
    """

    def __init__(
        self,
        world: World,
        instances: Instances,
        sizes: Sizes,
        marks: Iterable[tuple[str, str | None]] = SIMULATED,
        *,
        discovers: bool = True,
        server: Server | None = None,
    ) -> None:
        self._world = world
        self._instances = instances
        self._sizes = sizes
        self._devices = Devices(world)
        self._marks = tuple(marks)
        self._server = server
        self._nodes = world.queue(self._node)
        self._pods = world.queue(self._pod, parallel=16)
        self._leases = world.queue(self._renew, parallel=2)
        self._processes: dict[str, Process] = {}
        self._admitted: dict[str, tuple[Process, dict[str, int], float]] = {}
        self._refused: dict[str, tuple[str, str]] = {}
        self._since: dict[tuple[str, str], float] = {}
        self._pod_count = 0
        for kind in (ATTACHMENT, CLAIM, VOLUME):
            world.informer(kind)
        world.nodes.subscribe(self._node_changed)
        world.pods.subscribe(self._pod_changed)
        if discovers:
            world.start(self._discover)

    def owns(self, node: Json) -> bool:
        labels = labels_of(node)
        return any(key in labels and value in {None, labels[key]} for key, value in self._marks)

    # -- nodes ----------------------------------------------------------------------------

    async def _discover(self) -> None:
        """Look for instances that run: their kubelets start whether or not a Node exists."""
        while True:
            try:
                for instance in await self._instances.running():
                    if self._is_new(instance):
                        self._nodes.add(instance.dns_name)
            except Exception:  # noqa: BLE001 - an endpoint that is away must not end the simulation
                _LOG.debug("instances could not be listed", exc_info=True)
            await asyncio.sleep(self._world.timing.poll())

    def _is_new(self, instance: Instance) -> bool:
        process = self._processes.get(instance.dns_name)
        return process is None or process.instance != instance.provider_id

    def _node_changed(self, old: Json | None, new: Json | None) -> None:
        if new is None and old is not None and self.owns(old):
            # The kubelet of a instance that still runs goes on, but never makes its Node again.
            self._nodes.add(old["metadata"]["name"])
        elif new is not None and self.owns(new):
            self._nodes.add(new["metadata"]["name"])

    async def _node(self, name: str) -> float | None:
        node = self._world.nodes.get(name)
        if node is not None and not self.owns(node):
            return None
        instance = await self._instance_of(name, node)
        runs = (RUNNING, ENDING) if name in self._processes else (RUNNING,)
        if instance is None or instance.state not in runs:
            self._processes.pop(name, None)
            return None if instance is None or instance.state == GONE else self._world.timing.poll()
        if node is not None and annotation(node, STOPPED) is not None:
            self._processes.pop(name, None)
            return None
        now = asyncio.get_running_loop().time()
        process = self._process(name, instance, now)
        if process.started_at is None:
            wait = self._boot_wait(node, process, now)
            if wait is None or wait > 0:
                return wait
            if not await self._start_kubelet(name, process, instance):
                return None
        if not process.registered:
            return await self._register(name, process, instance)
        if node is None:
            return None
        return await self._report(node, process, now)

    async def _instance_of(self, name: str, node: Json | None) -> Instance | None:
        """Return the instance behind a name; None when neither a Node nor EC2 knows one."""
        if node is not None:
            return await self._instances.find(node["spec"].get("providerID") or "", name)
        return next((m for m in await self._instances.running() if m.dns_name == name), None)

    def _process(self, name: str, instance: Instance, now: float) -> Process:
        identity = instance.provider_id or name
        known = self._processes.get(name)
        if known is None or known.instance != identity:
            address = instance.address or _address(len(self._processes))
            known = Process(
                instance=identity,
                running_since=now,
                address=address,
                image_name=instance.image_name,
            )
            self._processes[name] = known
        return known

    def _boot_wait(self, node: Json | None, process: Process, now: float) -> float | None:
        """Return how long the kubelet does not start yet, None for ever."""
        if node is not None and annotation(node, NEVER_READY) is not None:
            return None
        timing = self._world.timing
        boot = seconds_of(node, READY_AFTER) if node is not None else None
        seconds = timing.boot_seconds if boot is None else boot
        ready_at = process.running_since + timing.real(seconds)
        start_at = max(ready_at - timing.real(timing.registration_seconds), process.running_since)
        process.next_attempt_at = ready_at
        return start_at - now

    async def _start_kubelet(self, name: str, process: Process, instance: Instance) -> bool:
        """Start a kubelet with the flags of its user data; return whether it can do anything."""
        try:
            flags = read_user_data(await self._instances.user_data(instance))
        except UnusableUserDataError as error:
            _LOG.warning("%s does not start its kubelet: %s", name, error)
            return False
        forbidden = forbidden_labels(flags.labels)
        if forbidden:
            _LOG.warning("%s: kubelet exits: unknown labels %s in --node-labels", name, forbidden)
            return False
        if self._server is not None and not self._server.answers(flags.endpoint, flags.authority):
            _LOG.warning("%s: kubelet does not reach %s", name, flags.endpoint)
            return False
        process.flags = flags
        process.started_at = asyncio.get_running_loop().time()
        # In the order of their creation, before anything can be answered by the API server.
        for pod in self._world.pods_on(name):
            self._decide(pod)
            self._pods.add(key_of(pod))
        return True

    async def _register(self, name: str, process: Process, instance: Instance) -> float | None:
        now = asyncio.get_running_loop().time()
        if process.next_attempt_at > now:
            return process.next_attempt_at - now
        node = self._world.nodes.get(name)
        size = self._sizes.of(node, instance.instance_type)
        labels = labels_of(node) if node is not None else {}
        arch = instance.architecture or labels.get("kubernetes.io/arch") or "amd64"
        wanted = initial_node(
            name, instance.provider_id, arch, process.flags, first_status(size, process.address)
        )
        if not await register(self._world, wanted):
            process.retry_seconds = min(process.retry_seconds * 2, LONGEST_RETRY_SECONDS)
            process.next_attempt_at = now + self._world.timing.real(process.retry_seconds)
            return process.next_attempt_at - now
        process.registered = True
        return 0.0

    async def _report(self, node: Json, process: Process, now: float) -> float | None:
        """Post the status, and return in how many seconds a device shows, None for no such."""
        first = process.reported_at is None
        process.reported_at = now if process.reported_at is None else process.reported_at
        size = self._sizes.of(node)
        extended, wait = self._devices.shown(node, size, process.image_name, now)
        status = node_status(node, size, process.address, extended)
        actual = (node.get("status") or {}).get("allocatable") or {}
        missing = any(actual.get(k) != v for k, v in status["allocatable"].items())
        if missing or not is_true(node, "Ready"):
            await self._world.patch_status(NODE, node, status)
        if first:
            self._leases.add(node["metadata"]["name"])
        return wait

    async def _renew(self, name: str) -> float | None:
        node, process = self._world.nodes.get(name), self._processes.get(name)
        if node is None or process is None or process.reported_at is None:
            return None
        instance = await self._instances.find(node["spec"].get("providerID") or "", name)
        if instance.state not in {RUNNING, ENDING}:
            self._processes.pop(name, None)
            self._nodes.add(name)
            return None
        timing = self._world.timing
        interval = max(
            timing.real(timing.lease_seconds),
            timing.least_lease_seconds,
            len(self._processes) / _LEASES_PER_SECOND,
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
            if is_plugin(new) and is_true(new, "Ready"):
                self._nodes.add(node_of(new))

    def _release(self, uid: str) -> None:
        self._refused.pop(uid, None)
        admitted = self._admitted.pop(uid, None)
        if admitted is not None:
            process, requests, _ = admitted
            for name, amount in requests.items():
                process.used[name] = process.used.get(name, 0) - amount
        for event in ("running", "stopping"):
            self._since.pop((uid, event), None)

    async def _pod(self, key: Key) -> float | None:
        pod = self._world.pods.objects.get(key)
        process = self._started(pod)
        if pod is None or process is None:
            return None
        if is_terminating(pod):
            return await self._stop(pod)
        if is_finished(pod):
            return None
        self._decide(pod)
        refusal = self._refused.get(pod["metadata"]["uid"])
        if refusal is not None:
            await self._world.patch_status(POD, pod, refused_status(*refusal))
            return None
        if pod["status"].get("phase") != "Running":
            return await self._start(pod, process)
        return await self._complete(pod)

    def _started(self, pod: Json | None) -> Process | None:
        """Return the kubelet of a pod's node if it has started and the Node exists."""
        name = node_of(pod) if pod is not None else ""
        process = self._processes.get(name)
        is_there = self._world.nodes.get(name) is not None
        return process if is_there and process is not None and process.started_at else None

    def _decide(self, pod: Json) -> None:
        """Admit a pod or refuse it, once, against the Node as last seen."""
        uid, name = pod["metadata"]["uid"], node_of(pod)
        process, node = self._processes[name], self._world.nodes.get(name)
        is_known = uid in self._refused or (
            uid in self._admitted and self._admitted[uid][0] is process
        )
        if is_known or node is None or is_finished(pod) or is_terminating(pod):
            return
        requests = pod_requests(pod)
        if (pod.get("status") or {}).get("phase") != "Running":
            refusal = refusal_of(pod, node, requests, process.used)
            if refusal is not None:
                self._refused[uid] = refusal
                return
        for resource, amount in requests.items():
            process.used[resource] = process.used.get(resource, 0) + amount
        self._admitted[uid] = process, requests, asyncio.get_running_loop().time()

    async def _start(self, pod: Json, process: Process) -> float | None:
        timing = self._world.timing
        steps = 1 + len(pod["spec"].get("initContainers") or ())
        admitted_at = self._admitted[pod["metadata"]["uid"]][2]
        now = asyncio.get_running_loop().time()
        wait = admitted_at + timing.real(timing.pod_start_seconds) * steps - now
        if wait > 0:
            return wait
        if not are_attached(self._world, pod):
            return timing.poll() / 5
        self._pod_count += 1
        address = _address(self._pod_count, second_octet=128)
        status = running_status(pod, address, process.address)
        running = await self._world.patch_status(POD, pod, status)
        return await self._complete(running)

    async def _complete(self, pod: Json) -> float | None:
        seconds = seconds_of(pod, COMPLETE_AFTER)
        if seconds is None and _of_job(pod):
            seconds = self._world.timing.job_seconds
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


def _of_job(pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] == "Job" and owner.get("controller") for owner in owners)


def _lease(node: Json, seconds: int) -> Json:
    name = node["metadata"]["name"]
    spec = {
        "holderIdentity": name,
        "leaseDurationSeconds": seconds,
        "renewTime": stamp(micros=True),
    }
    metadata = {"name": name, "namespace": _LEASES, "ownerReferences": [NODE.reference(node)]}
    return LEASE.document(metadata, spec=spec)


def _address(number: int, second_octet: int = 0) -> str:
    return f"10.{second_octet + number // 65536 % 128}.{number // 256 % 256}.{number % 256}"
