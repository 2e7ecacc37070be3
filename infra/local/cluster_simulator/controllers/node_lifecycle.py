"""The node lifecycle controller: taints from conditions, silent nodes, evictions by taint.

Source: https://kubernetes.io/docs/concepts/architecture/nodes/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/ (2026-08);
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/nodelifecycle/node_lifecycle_controller.go
(2026-11).
"""

import asyncio
from typing import Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.kinds import LEASE, NODE, POD
from infra.local.cluster_simulator.rules.matching import (
    condition_of,
    is_finished,
    taints_of,
    tolerates,
)
from infra.local.cluster_simulator.world import World, age, is_terminating, node_of, stamp

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

_MANAGED: Final = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
_LEASES: Final = "kube-node-lease"
# Node monitor grace period. Source: https://kubernetes.io/docs/reference/command-line-tools-reference/
# kube-controller-manager/ (--node-monitor-grace-period, 2026-11).
_GRACE_SECONDS: Final = 50.0
_CONDITIONS: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")


class NodeLifecycle:
    """Watches the health of nodes and moves pods away from those that are ill."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leases = world.informer(LEASE)
        self._nodes = world.queue(self._node)
        self._pods = world.queue(self._pod)
        # By name of a Node: when it was first seen, or last heard of. Never forgotten, as upstream:
        # a Node made under a name that was used before is silent from the beginning.
        self._heard_at: dict[str, float] = {}
        # By uid of a Node without a Lease: when its kubelet was first known to post a status.
        self._posted_at: dict[str, float] = {}
        self._suspected: set[str] = set()
        self._tainted_since: dict[str, float] = {}
        world.nodes.subscribe(self._node_changed)
        world.pods.subscribe(self._pod_changed)
        self._leases.subscribe(self._lease_changed)

    def _node_changed(self, old: Json | None, new: Json | None) -> None:
        if new is None:
            self._posted_at.pop((old or {})["metadata"]["uid"], None)
            return
        name = new["metadata"]["name"]
        self._nodes.add(name)
        if old is None or taints_of(old) != taints_of(new):
            for pod in self._world.pods_on(name):
                self._pods.add(key_of(pod))

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        if new is None:
            self._tainted_since.pop((old or {})["metadata"]["uid"], None)
        elif node_of(new) and (old is None or not node_of(old)):
            self._pods.add(key_of(new))

    def _lease_changed(self, old: Json | None, new: Json | None) -> None:
        # Renewals are looked at only when the one before has run out.
        if old is None and new is not None and new["metadata"]["namespace"] == _LEASES:
            self._nodes.add(new["metadata"]["name"])

    # -- health and taints ----------------------------------------------------------------

    async def _node(self, name: str) -> float | None:
        node = self._world.nodes.get(name)
        if node is None:
            return None
        ready = condition_of(node, "Ready").get("status")
        wait = self._silence_in(node, ready)
        if wait is not None and wait <= 0:
            await self._mark_unknown(node, never=ready is None)
            return None
        taints = self._wanted_taints(node, ready)
        if taints is not None:
            version = node["metadata"]["resourceVersion"]
            change = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}}
            await self._world.patch(NODE, node, change)
        return wait

    def _silence_in(self, node: Json, ready: str | None) -> float | None:
        """Return after how many seconds the node counts as silent; None when it cannot."""
        timing = self._world.timing
        now = asyncio.get_running_loop().time()
        if ready is not None:
            self._heard_at[node["metadata"]["name"]] = now
        if ready is None:
            first = self._heard_at.setdefault(node["metadata"]["name"], now)
            # A node that boots fast must not be called silent because this machine is slow.
            grace = max(timing.real(timing.startup_grace_seconds), 4 * timing.least_lease_seconds)
            return first + grace - now
        if ready == "Unknown":
            return None
        uid = node["metadata"]["uid"]
        lease = self._leases.get(node["metadata"]["name"], _LEASES)
        if lease is None:
            # A status counts as a sign of life, too: a kubelet may end before its first Lease.
            # Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/nodelifecycle/
            # node_lifecycle_controller.go (tryUpdateNodeHealth, probeTimestamp), read 2026-11-23.
            posted = self._posted_at.setdefault(uid, now)
            grace = max(timing.real(_GRACE_SECONDS), 4 * timing.least_lease_seconds)
            return posted + grace - now
        duration: int = lease["spec"]["leaseDurationSeconds"]
        left = duration - age(lease["spec"]["renewTime"]).total_seconds()
        if left > 0:
            self._suspected.discard(uid)
            return left
        if uid not in self._suspected:
            # Look twice: after a pause of this machine the renewal may just not be read yet.
            self._suspected.add(uid)
            return duration / 4
        return 0.0

    async def _mark_unknown(self, node: Json, *, never: bool) -> None:
        now = stamp()
        reason = "NodeStatusNeverUpdated" if never else "NodeStatusUnknown"
        what = "never posted" if never else "stopped posting"
        conditions = [
            {
                "type": kind,
                "status": "Unknown",
                "reason": reason,
                "message": f"Kubelet {what} node status.",
                "lastTransitionTime": now,
            }
            for kind in _CONDITIONS
        ]
        await self._world.patch_status(NODE, node, {"conditions": conditions})

    def _wanted_taints(self, node: Json, ready: str | None) -> list[Json] | None:
        """Return the taints the node should have, None when it has them."""
        wanted: list[tuple[str, str]] = []
        if node["spec"].get("unschedulable"):
            wanted.append((UNSCHEDULABLE, "NoSchedule"))
        if ready is None:
            wanted.append((NOT_READY, "NoSchedule"))
        elif ready != "True":
            key = NOT_READY if ready == "False" else UNREACHABLE
            wanted += [(key, "NoSchedule"), (key, "NoExecute")]
        current = [dict(taint) for taint in taints_of(node)]
        present = {(t["key"], t["effect"]) for t in current if t["key"] in _MANAGED}
        if present == set(wanted):
            return None
        kept = [
            taint
            for taint in current
            if taint["key"] not in _MANAGED or (taint["key"], taint["effect"]) in wanted
        ]
        added = [
            {"key": key, "effect": effect, "timeAdded": stamp()}
            for key, effect in wanted
            if (key, effect) not in present
        ]
        return kept + added

    # -- eviction by taint ----------------------------------------------------------------

    async def _pod(self, key: Key) -> float | None:
        pod = self._world.pods.objects.get(key)
        node = self._world.nodes.get(node_of(pod)) if pod else None
        if pod is None or node is None or is_terminating(pod) or is_finished(pod):
            return None
        uid = pod["metadata"]["uid"]
        seconds = _tolerated_seconds(pod, node)
        if seconds is None:
            self._tainted_since.pop(uid, None)
            return None
        now = asyncio.get_running_loop().time()
        since = self._tainted_since.setdefault(uid, now)
        wait = since + self._world.timing.real(seconds) - now
        if wait > 0:
            return wait
        await self._world.client.delete(POD, pod)
        return None


def _tolerated_seconds(pod: Json, node: Json) -> float | None:
    """Return how long a pod may stay among the node's NoExecute taints; None for ever."""
    shortest: float | None = None
    for taint in taints_of(node):
        if taint["effect"] != "NoExecute":
            continue
        matching = [t for t in pod["spec"].get("tolerations") or () if tolerates(t, taint)]
        if not matching:
            return 0.0
        limits = [t["tolerationSeconds"] for t in matching if "tolerationSeconds" in t]
        if limits:
            allowed = max(float(min(limits)), 0.0)
            shortest = allowed if shortest is None else min(shortest, allowed)
    return shortest
