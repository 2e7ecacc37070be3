"""Garbage collection: what lost its owner.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/ (2026-08).
"""

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
from infra.local.cluster_simulator.world import World, is_terminating

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
