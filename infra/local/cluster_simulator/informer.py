"""A cached copy of one resource, kept right by list and watch."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import Final

import aiohttp

from infra.local.cluster_simulator.client import ApiError, Client, Json
from infra.local.cluster_simulator.kinds import Kind

Key = tuple[str, str]
Handler = Callable[[Json | None, Json | None], None]

_LOG: Final = logging.getLogger(__name__)
_RANDOM: Final = random.SystemRandom()
_FIRST_DELAY_SECONDS: Final = 0.25
_LONGEST_DELAY_SECONDS: Final = 30.0
_HEALTHY_AFTER_SECONDS: Final = 5.0


def key_of(obj: Json) -> Key:
    """Return namespace (empty for cluster-wide objects) and name."""
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


class Informer:
    """All objects of one kind, with handlers called as (old, new) on every change.

    The client's own writes are fed back through `observe`, so that a controller sees what it
    created before the watch tells it; events that come later with the same version are dropped.
    """

    def __init__(self, kind: Kind, client: Client) -> None:
        self.kind = kind
        self.objects: dict[Key, Json] = {}
        self.synced = asyncio.Event()
        self._client = client
        self._handlers: list[Handler] = []
        self._by_owner: dict[str, dict[Key, Json]] = {}
        self._version = 0

    def subscribe(self, handler: Handler) -> None:
        """Call a handler for every later change, and now for every object that is there."""
        self._handlers.append(handler)
        for obj in list(self.objects.values()):
            handler(None, obj)

    def feed(self, add: Callable[[Key], None]) -> None:
        """Call with the key of each object that is there, now and whenever it changes."""
        self.subscribe(lambda _, new: add(key_of(new)) if new is not None else None)

    def get(self, name: str, namespace: str = "") -> Json | None:
        return self.objects.get((namespace, name))

    def __iter__(self) -> Iterator[Json]:
        return iter(list(self.objects.values()))

    def owned_by(self, uid: str) -> list[Json]:
        """Return the objects that name this uid as an owner, by name."""
        return [obj for _, obj in sorted(self._by_owner.get(uid, {}).items())]

    def observe(self, obj: Json) -> Json:
        """Take the answer to a write as news, unless the watch is already past it."""
        if int(obj["metadata"]["resourceVersion"]) > self._version:
            self._store(obj)
        return obj

    # -- reflecting -----------------------------------------------------------------------

    async def run(self) -> None:
        """List and watch until cancelled; failed calls are retried without limit."""
        delay = _FIRST_DELAY_SECONDS
        listed = False
        while True:
            started = time.monotonic()
            before = self._version
            try:
                if not listed:
                    await self._list()
                    listed = True
                await self._watch()
            except ApiError as error:
                listed = listed and error.code != 410
                if not (self.kind.optional and error.code == 404):
                    _LOG.debug("%s: %s", self.kind.plural, error)
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                _LOG.debug("%s: %s", self.kind.plural, error)
            if self._version > before or time.monotonic() - started > _HEALTHY_AFTER_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            else:
                delay = min(delay * 2, 2.0 if self.kind.optional else _LONGEST_DELAY_SECONDS)
            await asyncio.sleep(delay * _RANDOM.uniform(0.8, 1.2))

    async def _list(self) -> None:
        found: dict[Key, Json] = {}
        token = ""
        while True:
            page = await self._client.list_page(self.kind, token)
            for item in page.get("items") or ():
                found[key_of(item)] = item
            token = page["metadata"].get("continue") or ""
            if not token:
                break
        for key in [key for key in self.objects if key not in found]:
            self._drop(key)
        for item in found.values():
            self._store(item)
        self._version = int(page["metadata"]["resourceVersion"])
        self.synced.set()

    async def _watch(self) -> None:
        seconds = _RANDOM.randint(300, 400)
        async for event in self._client.watch(self.kind, str(self._version), seconds):
            obj: Json = event["object"]
            self._version = int(obj["metadata"]["resourceVersion"])
            if event["type"] == "DELETED":
                self._drop(key_of(obj), obj)
            elif event["type"] != "BOOKMARK":
                self._store(obj)

    def _store(self, obj: Json) -> None:
        key = key_of(obj)
        old = self.objects.get(key)
        if old is not None:
            if int(old["metadata"]["resourceVersion"]) >= int(obj["metadata"]["resourceVersion"]):
                return
            if old["metadata"]["uid"] != obj["metadata"]["uid"]:
                self._drop(key)
                old = None
        self.objects[key] = obj
        if old is not None:
            self._unindex(key, old)
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._by_owner.setdefault(owner["uid"], {})[key] = obj
        self._emit(old, obj)

    def _drop(self, key: Key, last: Json | None = None) -> None:
        old = self.objects.get(key)
        if old is None or (last is not None and last["metadata"]["uid"] != old["metadata"]["uid"]):
            return
        del self.objects[key]
        self._unindex(key, old)
        self._emit(old, None)

    def _unindex(self, key: Key, obj: Json) -> None:
        for owner in obj["metadata"].get("ownerReferences") or ():
            owned = self._by_owner.get(owner["uid"], {})
            owned.pop(key, None)
            if not owned:
                self._by_owner.pop(owner["uid"], None)

    def _emit(self, old: Json | None, new: Json | None) -> None:
        for handler in self._handlers:
            handler(old, new)
