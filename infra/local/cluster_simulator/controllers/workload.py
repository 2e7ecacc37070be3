"""What all workload controllers have in common: one queue, woken by owners and by what they own."""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar, Final, TypeVar

import orjson

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.informer import Key
from infra.local.cluster_simulator.kinds import POD, Kind
from infra.local.cluster_simulator.rules.matching import condition_of, is_finished, is_true
from infra.local.cluster_simulator.world import World, is_terminating, stamp

T = TypeVar("T")

# Events of many pods of one owner are looked at together.
_SETTLE_SECONDS: Final = 0.05
_CALLS_AT_ONCE: Final = 16


class Workload(ABC):
    """The controller of one kind of workload."""

    kind: ClassVar[Kind]
    owned: ClassVar[Kind] = POD

    def __init__(self, world: World) -> None:
        self.world = world
        self.cache = world.informer(self.kind)
        self.queue = world.queue(self._handle, parallel=4)
        self.cache.feed(self.queue.add)
        world.informer(self.owned).subscribe(self._owned_changed)

    @abstractmethod
    async def reconcile(self, owner: Json, owned: list[Json]) -> float | None:
        """Bring what an object owns, and its status, closer to its spec.

        Args:
            owned: What it owns, by name, ended and terminating ones included.
        """

    async def _handle(self, key: Key) -> float | None:
        owner = self.cache.objects.get(key)
        if owner is None or is_terminating(owner):
            return None
        owned = self.world.informer(self.owned).owned_by(owner["metadata"]["uid"])
        return await self.reconcile(owner, owned)

    def _owned_changed(self, old: Json | None, new: Json | None) -> None:
        meta = (new or old or {})["metadata"]
        for owner in meta.get("ownerReferences") or ():
            if owner["kind"] == self.kind.name:
                self.queue.add((meta.get("namespace", ""), owner["name"]), _SETTLE_SECONDS)


async def together(call: Callable[[T], Awaitable[Any]], things: Iterable[T]) -> None:
    """Call for each thing, some at a time; the first failure is raised when all have ended."""
    gate = asyncio.Semaphore(_CALLS_AT_ONCE)

    async def one(thing: T) -> None:
        async with gate:
            await call(thing)

    results = await asyncio.gather(*map(one, things), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def scaled(value: int | str, total: int, *, up: bool) -> int:
    """Return a count given as a number or a percentage of a total."""
    if isinstance(value, int):
        return value
    part = total * int(value.removesuffix("%"))
    return -(-part // 100) if up else part // 100


_HASH_LENGTH: Final = 10
_STAY_SECONDS: Final = 300
_ILL: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def template_hash(template: Json) -> str:
    """Return a short text that changes when a pod template does."""
    text = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:_HASH_LENGTH]


def owner_reference(kind: Kind, owner: Json) -> Json:
    """Return the reference by which a controller marks what is its own."""
    reference = kind.reference(owner) | {"controller": True, "blockOwnerDeletion": True}
    reference.pop("namespace", None)
    return reference


def pod_for(kind: Kind, owner: Json, *, name: str = "", labels: Json | None = None) -> Json:
    """Return a new pod of a workload.

    Args:
        name: Exact name of the pod; generated from the owner's when empty.
        labels: Labels on top of the template's.
    """
    template = owner["spec"]["template"]
    meta = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "annotations": meta.get("annotations") or {},
        "ownerReferences": [owner_reference(kind, owner)],
    }
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner['metadata']['name']}-"
    # What the DefaultTolerationSeconds admission plug-in would add.
    spec = {**template["spec"]}
    tolerations = list(spec.get("tolerations") or ())
    covered = {t.get("key") for t in tolerations if t.get("effect") in {None, "", "NoExecute"}}
    if None not in covered:
        tolerations += [
            {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _STAY_SECONDS,
            }
            for key in _ILL
            if key not in covered
        ]
    return POD.document(metadata, spec={**spec, "tolerations": tolerations})


def is_active(pod: Json) -> bool:
    """Return whether a pod counts as a replica: neither ended nor on its way out."""
    return not is_finished(pod) and not is_terminating(pod)


def ready_count(pods: Iterable[Json]) -> int:
    return sum(is_true(pod, "Ready") for pod in pods)


def condition(kind: str, *, holds: bool, reason: str, old: Json) -> Json:
    """Return a status condition; it keeps its times while nothing changes."""
    status = "True" if holds else "False"
    before = condition_of(old, kind)
    if (before.get("status"), before.get("reason")) == (status, reason):
        return dict(before)
    now = stamp()
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": reason,
        "lastTransitionTime": now,
    }
