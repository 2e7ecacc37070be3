"""Garbage collection: what lost its owner.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/ (2026-08).
"""

import asyncio
from typing import Any, Final

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.kinds import (
    CSI_NODE,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NODE,
    OWNERS,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from infra.local.cluster_simulator.rules.matching import is_finished, is_true, taints_of
from infra.local.cluster_simulator.world import World, is_terminating, node_of

_OWNED: Final = (NODE, POD, REPLICA_SET, DEPLOYMENT, DAEMON_SET, STATEFUL_SET, JOB, CSI_NODE)
_OWNER_KINDS: Final = {(kind.api, kind.name): kind for kind in OWNERS}

Item = tuple[Kind, Key]


def _owners_of(thing: Json) -> Any:
    return thing.get("metadata", {}).get("ownerReferences") or []


class Garbage:
    """Deletes objects whose owners are gone."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._items = world.queue(self._collect, parallel=16)
        for kind in sorted({*_OWNED, *OWNERS}, key=lambda kind: kind.plural):
            world.informer(kind).subscribe(self._watcher(kind))

    def _watcher(self, kind: Kind) -> Any:
        def changed(old: Json | None, new: Json | None) -> None:
            thing = new or old or {}
            if new is None:
                self._owner_gone(thing["metadata"]["uid"])
            elif (
                kind in _OWNED and _owners_of(thing) and _owners_of(old or {}) != _owners_of(thing)
            ):
                # Its owner may have gone before that was seen; asked again once caches are full.
                self._items.add((kind, key_of(thing)), 1.0)

        return changed

    def _owner_gone(self, uid: str) -> None:
        for kind in _OWNED:
            for thing in self._world.informer(kind).owned_by(uid):
                self._items.add((kind, key_of(thing)))

    async def _collect(self, item: Item) -> None:
        kind, key = item
        thing = self._world.informer(kind).objects.get(key)
        if thing is None or is_terminating(thing):
            return
        for reference in thing["metadata"].get("ownerReferences") or ():
            if await self._exists(reference, thing["metadata"].get("namespace", "")):
                return
        if thing["metadata"].get("ownerReferences"):
            await self._world.client.delete(kind, thing)

    async def _exists(self, reference: Json, namespace: str) -> bool:
        """Return whether an owner is there; the server is asked before anything is deleted."""
        kind = _OWNER_KINDS.get((reference["apiVersion"], reference["kind"]))
        if kind is None or (kind.optional and not self._world.informer(kind).synced.is_set()):
            return True  # a kind that is not watched here is none of our business
        cached = self._world.informer(kind).get(
            reference["name"], namespace if kind.namespaced else ""
        )
        if cached is not None and cached["metadata"]["uid"] == reference["uid"]:
            return True
        try:
            found = await self._world.client.get(kind, namespace, reference["name"])
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return bool(found["metadata"]["uid"] == reference["uid"])


OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


class PodGarbage:
    """Looks every 20 s for pods that no kubelet will ever end, and deletes them by force."""

    def __init__(self, world: World) -> None:
        self._world = world
        # By name of a Node that is gone: when its quarantine ends.
        self._quarantined: dict[str, float] = {}
        self._looks = world.queue(self._look, parallel=1)
        self._looks.add(POD.name)

    async def _look(self, _: str) -> float:
        now = asyncio.get_running_loop().time()
        nodes = {node["metadata"]["name"]: node for node in self._world.nodes}
        pods = [pod for pod in self._world.pods if node_of(pod)]
        for pod in pods:
            node = nodes.get(node_of(pod))
            if node is not None and is_terminating(pod) and _is_out_of_service(node):
                await self._delete(pod)
        gone = {node_of(pod) for pod in pods} - set(nodes)
        timing = self._world.timing
        ends = now + timing.real(timing.quarantine_seconds)
        self._quarantined = {name: self._quarantined.get(name, ends) for name in gone}
        for name in sorted(name for name, end in self._quarantined.items() if end <= now):
            del self._quarantined[name]
            if not await self._exists(name):
                for pod in self._world.pods_on(name):
                    await self._delete(pod)
        return timing.real(timing.collection_seconds)

    async def _exists(self, name: str) -> bool:
        """Return whether the server knows a Node that the cache does not."""
        try:
            await self._world.client.get(NODE, "", name)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    async def _delete(self, pod: Json) -> None:
        """Mark a pod as failed, then delete it without a grace period."""
        try:
            if not is_finished(pod):
                await self._world.client.patch_status(POD, pod, {"phase": "Failed"})
            await self._world.client.delete(POD, pod, grace_seconds=0)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _is_out_of_service(node: Json) -> bool:
    tainted = any(taint["key"] == OUT_OF_SERVICE for taint in taints_of(node))
    return tainted and not is_true(node, "Ready")
