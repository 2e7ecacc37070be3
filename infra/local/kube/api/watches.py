"""Watch streams: replay from the log, then live; bookmarks; 410 as an ERROR line."""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

import orjson
from aiohttp import web

from infra.local.kube.api.verbs import view_of
from infra.local.kube.api.views import View, visible
from infra.local.kube.calls import Call
from infra.local.kube.errors import ApiError, JsonObject
from infra.local.kube.store import Collection, Entry, Match, Store, with_version

DEFAULT_SECONDS = 2400
BOOKMARK_SECONDS = 20
BOOKMARK_BEFORE_END_SECONDS = 2
_BATCH = 500


@dataclass(slots=True)
class Watch:
    """One open watch.

    Attributes:
        position: Place in the log of the next change to look at.
        with_columns: Whether the next table line still has to name its columns.
    """

    call: Call
    view: View
    match: Match
    collection: Collection
    position: int
    with_columns: bool = True

    @property
    def is_behind(self) -> bool:
        """Whether there are changes it has not looked at."""
        return self.position < self.collection.base + len(self.collection.log)

    def pending(self) -> list[bytes]:
        """Return the lines of the next changes and step over them."""
        if self.position < self.collection.base:
            raise ApiError(410, "Expired", f"too old resource version ({self.collection.floor})")
        start = self.position - self.collection.base
        changes = self.collection.log[start : start + _BATCH]
        self.position += len(changes)
        lines = []
        for change in changes:
            seen = visible(change, self.call.namespace, self.matches)
            if seen is None:
                continue
            kind, entry = seen
            lines.append(self.line(kind, entry, change.version))
        return lines

    def matches(self, entry: Entry) -> bool:
        return (not self.call.name or entry.key[1] == self.call.name) and self.match(entry)

    def line(self, kind: str, entry: Entry, version: int) -> bytes:
        """Write one event; a state seen again carries the version at which it left."""
        if entry.version != version:
            entry = with_version(entry, version)
        text = self.view.event(kind, entry, with_columns=self.with_columns)
        self.with_columns = False
        return text

    def bookmark(self, version: int, *, initial: bool = False) -> bytes:
        metadata: JsonObject = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        resource = self.call.resource
        body: JsonObject = {"kind": resource.kind, "apiVersion": resource.api_version}
        body["metadata"] = metadata
        if resource.is_pod and not self.view.form:
            # What a real server sends: the zero value of the type.
            body |= {"spec": {"containers": None}, "status": {}}
        return orjson.dumps({"type": "BOOKMARK", "object": body}) + b"\n"


def _open(store: Store, call: Call, match: Match) -> tuple[Watch, Iterable[bytes]]:
    collection = store.collection(call.resource)
    version = call.query.get("resourceVersion", "")
    if version and not version.isdecimal():
        raise ApiError(400, "BadRequest", f"Invalid value: resourceVersion {version!r}")
    fresh = version in {"", "0"} or call.flag("sendInitialEvents")
    start = store.version if fresh else int(version)
    watch = Watch(call, view_of(call), match, collection, collection.position_after(start))
    if not fresh:
        return watch, ()
    entries = store.select(call.resource, call.namespace, watch.matches)
    lines = [watch.line("ADDED", entry, entry.version) for entry in entries]
    if call.flag("sendInitialEvents") and call.flag("allowWatchBookmarks"):
        lines.append(watch.bookmark(store.version, initial=True))
    return watch, lines


async def serve(request: web.BaseRequest, store: Store, call: Call) -> web.StreamResponse:
    """Answer a watch until its time is over, the client leaves, or its history is gone."""
    match = call.match()
    view_of(call)
    seconds = call.number("timeoutSeconds") or DEFAULT_SECONDS
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        try:
            watch, lines = _open(store, call, match)
            for line in lines:
                await response.write(line)
            await _follow(response, store, watch, seconds)
        except ApiError as error:
            body = orjson.dumps({"type": "ERROR", "object": error.status()})
            await response.write(body + b"\n")
        await response.write_eof()
    return response


async def _follow(response: web.StreamResponse, store: Store, watch: Watch, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    bookmarks = watch.call.flag("allowWatchBookmarks")
    due = min(loop.time() + BOOKMARK_SECONDS, end - BOOKMARK_BEFORE_END_SECONDS)
    waker = asyncio.Event()
    watch.collection.wakers.add(waker)
    try:
        while True:
            waker.clear()
            if lines := watch.pending():
                await response.write(b"".join(lines))
            if lines or watch.is_behind:
                continue
            if watch.collection.closed:
                return
            now = loop.time()
            if bookmarks and due <= now < end:
                await response.write(watch.bookmark(store.version))
                due = min(now + BOOKMARK_SECONDS, end - BOOKMARK_BEFORE_END_SECONDS)
                due = due if due > now else end
            if now >= end:
                return
            wait = min(end, due if bookmarks else end) - now
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waker.wait(), max(wait, 0.001))
    finally:
        watch.collection.wakers.discard(waker)
