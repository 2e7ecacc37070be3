"""The scheduler: binds pending pods, or says why it cannot. No preemption.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/ (2026-08).
"""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.kinds import (
    CLAIM,
    CSI_NODE,
    EVENT,
    NAMESPACE,
    POD,
    STORAGE_CLASS,
    VOLUME,
)
from infra.local.cluster_simulator.rules.amounts import pod_requests
from infra.local.cluster_simulator.rules.claims import attach_reasons, claim_names, volume_reasons
from infra.local.cluster_simulator.rules.matching import ClusterView, condition_of, labels_of
from infra.local.cluster_simulator.rules.predicates import (
    allocatable_of,
    host_ports,
    node_reasons,
    port_reasons,
    resource_reasons,
)
from infra.local.cluster_simulator.rules.topology import PodTopology
from infra.local.cluster_simulator.scheduler.node_usage import (
    Room,
    Rooms,
    Score,
    counts,
    placement_class,
    score,
    topology_class,
)
from infra.local.cluster_simulator.volumes import prebind
from infra.local.cluster_simulator.world import World, event_about, is_terminating, node_of, stamp

_LOG = logging.getLogger(__name__)
_DEBOUNCE_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 5.0
_YIELD_EVERY: Final = 25
_ENOUGH_NODES: Final = 100
_ROUND: Final = "round"


@dataclass(slots=True, kw_only=True)
class _Class:
    """What all pods of one placement class share, until a node changes."""

    requests: dict[str, int]
    has_ports: bool
    has_claims: bool
    allowed: list[tuple[str, Room]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


class Scheduler:
    """One scheduler for the pods that name it (or none)."""

    def __init__(self, world: World, name: str = "default-scheduler") -> None:
        self._world = world
        self._name = name
        self._rooms = Rooms()
        self._pending: dict[Key, Json] = {}
        self._classes: dict[bytes, _Class] = {}
        self._topologies: dict[bytes, PodTopology] = {}
        self._class_of: dict[str, tuple[bytes, bytes]] = {}
        self._assumed: dict[Key, str] = {}
        self._said: dict[Key, tuple[str, float]] = {}
        self._verdicts: dict[Key, str] = {}
        self._events: dict[str, Json] = {}
        self._start = 0
        self._passes = world.queue(self._pass, parallel=1)
        self._binds = world.queue(self._bind, parallel=16)
        self._notes = world.queue(self._say)
        for kind in (NAMESPACE, CLAIM, VOLUME, STORAGE_CLASS, CSI_NODE):
            world.informer(kind).subscribe(self._other_changed)
        world.nodes.subscribe(self._node_changed)
        world.pods.subscribe(self._pod_changed)

    # -- events ---------------------------------------------------------------------------

    def _node_changed(self, old: Json | None, new: Json | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        if old is not None and new is not None and _stays_same(old, new):
            self._rooms.by_name[name].node = new
            return
        self._rooms.set_node(name, new)
        self._classes.clear()
        self._topologies.clear()
        self._trigger()

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        pod = new or old or {}
        key = key_of(pod)
        waits = new is not None and self._is_waiting(new)
        place = node_of(new) if new is not None and counts(new) else ""
        if new is None or not waits:
            self._pending.pop(key, None)
            self._assumed.pop(key, None)
            self._said.pop(key, None)
            self._class_of.pop(pod["metadata"]["uid"], None)
            self._events.pop(pod["metadata"]["uid"], None)
        else:
            self._pending[key] = new
            place = self._assumed.get(key, "")
        if self._rooms.place(pod, place):
            self._topologies.clear()
            self._trigger()
        elif waits and (old is None or old["spec"] != pod["spec"]):
            self._trigger()

    def _other_changed(self, *_: Json | None) -> None:
        self._topologies.clear()
        self._trigger()

    def _is_waiting(self, pod: Json) -> bool:
        spec = pod["spec"]
        mine = spec.get("schedulerName", self._name) == self._name
        return mine and not spec.get("nodeName") and not is_terminating(pod)

    def _trigger(self) -> None:
        if self._pending:
            self._passes.add(_ROUND, _DEBOUNCE_SECONDS)

    # -- one pass over the pending pods ---------------------------------------------------

    async def _pass(self, _: str) -> float | None:
        waiting = [pod for key, pod in self._pending.items() if key not in self._assumed]
        failed: dict[bytes, str] = {}
        for number, pod in enumerate(sorted(waiting, key=_order)):
            key = key_of(pod)
            if self._pending.get(key) is not None and key not in self._assumed:
                self._schedule(key, pod, failed)
            if number % _YIELD_EVERY == _YIELD_EVERY - 1:
                await asyncio.sleep(0)
        return _RETRY_SECONDS if waiting else None

    def _schedule(self, key: Key, pod: Json, failed: dict[bytes, str]) -> None:
        if pod["spec"].get("schedulingGates"):
            self._note(key, "")
            return
        uid = pod["metadata"]["uid"]
        if uid not in self._class_of:
            self._class_of[uid] = placement_class(pod), topology_class(pod)
        sort, topology_sort = self._class_of[uid]
        if sort not in failed:
            topology = self._topology(topology_sort, pod)
            room_name, why = self._choose(self._class(sort, pod), pod, topology)
            if room_name:
                self._assume(key, pod, room_name)
                return
            total = len(self._rooms.open())
            text = ", ".join(sorted(f"{n} {reason}" for reason, n in why.items()))
            failed[sort] = f"0/{total} nodes are available: {text}."
            if not total:
                failed[sort] = "no nodes available to schedule pods"
        self._note(key, failed[sort])

    def _class(self, sort: bytes, pod: Json) -> _Class:
        found = self._classes.get(sort)
        if found is None:
            found = _Class(
                requests=pod_requests(pod),
                has_ports=any(True for _ in host_ports(pod)),
                has_claims=bool(claim_names(pod)),
            )
            for name, room in self._rooms.open():
                assert room.node is not None
                reasons = node_reasons(pod, room.node)
                if reasons:
                    found.refused[reasons[0]] += 1
                else:
                    found.allowed.append((name, room))
            self._classes[sort] = found
        return found

    def _topology(self, sort: bytes, pod: Json) -> PodTopology:
        if sort not in self._topologies:
            self._topologies[sort] = PodTopology(pod, self._view())
        return self._topologies[sort]

    def _view(self, *, with_pods: bool = True) -> ClusterView:
        world = self._world
        return ClusterView(
            nodes=[room.node for _, room in self._rooms.open() if room.node is not None],
            pods=self._rooms.bound() if with_pods else (),
            namespaces={n["metadata"]["name"]: labels_of(n) for n in world.informer(NAMESPACE)},
            claims=world.informer(CLAIM).objects,
            volumes={v["metadata"]["name"]: v for v in world.informer(VOLUME)},
            storage_classes={c["metadata"]["name"]: c for c in world.informer(STORAGE_CLASS)},
            csi_nodes={c["metadata"]["name"]: c for c in world.informer(CSI_NODE)},
        )

    def _choose(self, sort: _Class, pod: Json, topology: PodTopology) -> tuple[str, Counter[str]]:
        """Return the best node's name, or an empty one and how many nodes say what against it."""
        why: Counter[str] = Counter(sort.refused)
        view = self._view(with_pods=False) if sort.has_claims else None
        best: tuple[Score, str] | None = None
        feasible = 0
        count = len(sort.allowed)
        for offset in range(count):
            name, room = sort.allowed[(self._start + offset) % count]
            assert room.node is not None
            reasons = (
                (not room.holds(sort.requests) and resource_reasons(sort.requests, room.free()))
                or (sort.has_ports and port_reasons(pod, room.ports()))
                or (view is not None and _volume_reasons(pod, room, view))
                or topology.reasons(room.node)
            )
            if reasons:
                why.update(reasons)
                continue
            suits = score(pod, room, topology, sort.requests), name
            best = suits if best is None else min(best, suits)
            feasible += 1
            if feasible >= max(_ENOUGH_NODES, count // 2):
                self._start = (self._start + offset + 1) % count
                break
        return (best[1] if best else ""), why

    def _assume(self, key: Key, pod: Json, name: str) -> None:
        self._assumed[key] = name
        self._rooms.place(pod, name)
        node = self._rooms.by_name[name].node
        assert node is not None
        for topology in self._topologies.values():
            topology.place(pod, node)
        self._binds.add(key)

    # -- writing --------------------------------------------------------------------------

    async def _bind(self, key: Key) -> float | None:
        pod, name = self._pending.get(key), self._assumed.get(key)
        if pod is None or name is None:
            return None
        try:
            node = self._world.nodes.get(name)
            if node is not None:
                if not await prebind(self._world, pod, node):
                    return self._world.timing.poll() / 5
                await self._world.client.bind(pod, name)
                return None
        except ApiError as error:
            _LOG.debug("%s to %s: %s", key, name, error)
        # The pod was bound or deleted by another client, or the node was deleted: schedule it again
        # from the informers.
        if self._assumed.pop(key, None) is not None:
            self._rooms.place(pod, "")
            self._topologies.clear()
        self._passes.add(_ROUND, _DEBOUNCE_SECONDS)
        return None

    def _note(self, key: Key, message: str) -> None:
        self._verdicts[key] = message
        self._notes.add(key)

    async def _say(self, key: Key) -> float | None:
        message, pod = self._verdicts.pop(key, ""), self._pending.get(key)
        if pod is None or key in self._assumed:
            return None
        reason = "Unschedulable" if message else "SchedulingGated"
        current = condition_of(pod, "PodScheduled")
        now = asyncio.get_running_loop().time()
        said, when = self._said.get(key, (current.get("message", ""), float("-inf")))
        if current.get("reason") == reason:
            if said == message:
                return None
            # The count of nodes changes often while they come; the reader needs it now and then.
            wait = when + self._world.timing.real(_RETRY_SECONDS) - now
            if wait > 0:
                self._verdicts.setdefault(key, message)
                return wait
        self._said[key] = message, now
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message or "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": current.get("lastTransitionTime") or stamp(),
        }
        await self._world.patch_status(POD, pod, {"conditions": [condition]})
        if message:
            await self._send_event(pod, message)
        return None

    async def _send_event(self, pod: Json, message: str) -> None:
        """Tell why a pod waits; the Event of a pod is renewed, so that many pods send few.

        Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/scheduler/schedule_one.go
        (handleSchedulingFailure), which leaves it to the recorder to count repetitions.
        """
        uid, client = pod["metadata"]["uid"], self._world.client
        sent = self._events.get(uid)
        if sent is not None:
            sent["count"] += 1
            change = {"message": message, "count": sent["count"], "lastTimestamp": stamp()}
            await client.patch(EVENT, sent, change)
            return
        told = {"type": "Warning", "reason": "FailedScheduling", "message": message}
        event = event_about(POD, pod, self._name, uid[:13], **told)
        self._events[uid] = await client.create(EVENT, event)


def _volume_reasons(pod: Json, room: Room, view: ClusterView) -> list[str]:
    assert room.node is not None
    standing = list(room.pods.values())
    return volume_reasons(pod, room.node, view) or attach_reasons(pod, room.node, standing, view)


def _order(pod: Json) -> tuple[int, str, Key]:
    return -(pod["spec"].get("priority") or 0), pod["metadata"]["creationTimestamp"], key_of(pod)


def _stays_same(old: Json, new: Json) -> bool:
    same_marks = old["spec"] == new["spec"] and labels_of(old) == labels_of(new)
    return same_marks and allocatable_of(old) == allocatable_of(new)
