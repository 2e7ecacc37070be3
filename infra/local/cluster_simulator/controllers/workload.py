"""What all workload controllers have in common: one queue, woken by owners and by what they own."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar, Final, TypeVar

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.informer import Key
from infra.local.cluster_simulator.kinds import POD, Kind
from infra.local.cluster_simulator.world import World, is_terminating

T = TypeVar("T")

# Events of many pods of one owner are looked at together.
_SETTLE_SECONDS: Final = 0.05
_CALLS_AT_ONCE: Final = 16


class Workload(ABC):
    """The controller of one kind of workload.

    Attributes:
        kind: What it controls.
        owned: What its objects own, and whose changes wake it.
    """

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
            owner: The object, which is not being deleted.
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
    """Return a count given as a number or a percentage of a total.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(value, int):
        return value
    part = total * int(value.removesuffix("%"))
    return -(-part // 100) if up else part // 100
