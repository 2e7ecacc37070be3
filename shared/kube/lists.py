"""Lists, page by page, each decoded before the next is fetched; and watches."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from shared.kube.api import (
    TOO_LARGE,
    Decode,
    ExpiredError,
    KubeApi,
    Query,
    Reply,
    Stream,
    error_for,
    raise_unless_ok,
)
from shared.manifests.raw_json import Raw
from shared.model.errors import UnavailableError
from shared.ports.cluster import EachPage, nothing

T = TypeVar("T")

PAGE_SIZE: Final = 250
# The most objects and bytes of a page: a page is held in memory as text and as objects at the same
# time.
MOST_PAGE_SIZE: Final = 1000
PAGE_BYTES: Final = 4 * 2**20
# The most pages and bytes of a list: no cluster has more, but a faulty server may never end it.
MOST_PAGES: Final = 2000
MOST_LIST_BYTES: Final = 2 * 2**30
# A page that is too large for an answer is requested again with an eighth of its objects.
_SMALLER: Final = 8
_ATTEMPTS: Final = 3


class WatchEvent(NamedTuple, Generic[T]):
    """A change of one object.

    Attributes:
        value: The object; None for a bookmark, which has only a version.
        gone: Whether it is no longer in the collection.
    """

    version: int
    value: T | None = None
    gone: bool = False


class ListWatch(Generic[T]):
    """Lists and watches one collection.

    The size of each page follows from the bytes of the pages before: objects of a few hundred
    kilobytes come a few at a time, small objects in fewer requests. A page that is too large to be
    read is requested again with fewer objects.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
    (2026-08).

    Args:
        path: Path of the collection, such as `/api/v1/pods`.
        project: Returns the value to keep of a raw object.
        query: Selectors of the objects.
        most: The most objects of a page.
        decode: Decodes a page; it may leave out fields that nobody reads.

    Attributes:
        version: The resourceVersion of the first page of the last list: a long list may end at a
            later one.
    """

    def __init__(
        self,
        api: KubeApi,
        path: str,
        project: Callable[[Mapping[str, Any]], T],
        query: Query = (),
        *,
        most: int = MOST_PAGE_SIZE,
        decode: Decode = json.loads,
    ) -> None:
        self._api = api
        self._path = path
        self._project = project
        self._query = tuple(query)
        self._most = most
        self._decode = decode
        self.version = ""

    def pages(self) -> Iterator[list[T]]:
        """Yield the values of each page.

        Raises:
            ExpiredError: If the list took so long that its continue token is no longer served.
            UnavailableError: If the list has too many pages or bytes, or an object is too large.
        """
        token, count, size_bytes = "", 0, 0
        size, most = min(PAGE_SIZE, self._most), self._most
        for _ in range(MOST_PAGES):
            query = [*self._query, ("limit", str(size))]
            if token:
                query.append(("continue", token))
            reply = self._api.send("GET", self._path, query=query, decode=self._decode)
            if reply.status == TOO_LARGE and size > 1:
                size = most = max(size // _SMALLER, 1)
                continue
            raise_unless_ok(reply, f"GET {self._path}")
            metadata = reply.body.get("metadata") or {}
            if not token:
                self.version = str(metadata.get("resourceVersion", ""))
            items = reply.body.get("items") or ()
            yield [self._project(item) for item in items if isinstance(item, Mapping)]
            token = metadata.get("continue") or ""
            if not token:
                return
            count, size_bytes = count + len(items), size_bytes + reply.size_bytes
            if size_bytes > MOST_LIST_BYTES:
                raise UnavailableError(f"{self._path}: more than {MOST_LIST_BYTES} bytes")
            if count:
                fitting = PAGE_BYTES * count // max(size_bytes, 1)
                size = max(min(fitting, most), 1)
        raise UnavailableError(f"{self._path}: more than {MOST_PAGES} pages")

    def all(self, each_page: EachPage = nothing) -> list[T]:
        """Return all values, in the server's order.

        A list whose continue token expires meanwhile starts again.

        Args:
            each_page: Called after each page; an error that it raises ends the list.

        Raises:
            UnavailableError: If that happens three times.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            found: list[T] = []
            try:
                for page in self.pages():
                    found.extend(page)
                    each_page()
            except ExpiredError as error:
                if attempt == _ATTEMPTS:
                    text = f"{self._path}: the list takes too long: {error}"
                    raise UnavailableError(text) from error
                continue
            break
        return found

    def watch(self, version: str, read_seconds: float, server_seconds: int | None = None) -> Stream:
        """Return a watch from a version.

        Args:
            read_seconds: Longest silence before the connection counts as dead.
            server_seconds: When the server ends the watch; None for its own default.

        Raises:
            ExpiredError: If the server no longer has the version, and answers with status 410.
        """
        query = [
            *self._query,
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
        ]
        if server_seconds is not None:
            query.append(("timeoutSeconds", str(server_seconds)))
        return self._api.stream(self._path, query, read_seconds)

    def events(self, stream: Stream) -> Iterator[WatchEvent[T]]:
        """Yield the events of a watch until the server ends it.

        Raises:
            ExpiredError: If the server no longer has the version, and sends an ERROR event.
            UnavailableError: If the watch cannot be read.
            AutoscalerError: For any other ERROR event.
        """
        for line in stream.lines():
            try:
                event = json.loads(line)
                kind, raw = event["type"], event["object"]
                failure = _failure(raw) if kind == "ERROR" else None
                version = (raw.get("metadata") or {}).get("resourceVersion")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                text = f"watch {self._path}: not an event: {line[:80]!r}"
                raise UnavailableError(text) from error
            if failure is not None:
                raise error_for(failure, f"watch {self._path}")
            value = None if kind == "BOOKMARK" else self._project(raw)
            yield WatchEvent(version_number(version), value, gone=kind == "DELETED")


def list_all(
    api: KubeApi,
    path: str,
    project: Callable[[Mapping[str, Any]], T],
    query: Query = (),
    each_page: EachPage = nothing,
    *,
    decode: Decode = json.loads,
) -> list[T]:
    """Return the projection of every item, as `ListWatch.all` does."""
    return ListWatch(api, path, project, query, decode=decode).all(each_page)


class KubeReader:
    """Reads single objects and lists from one API server."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def _find(self, path: str) -> Mapping[str, Any] | None:
        reply = self._api.send("GET", path)
        if reply.status == 404:
            return None
        raise_unless_ok(reply, f"GET {path}")
        return reply.body

    def _list(self, path: str) -> list[Raw]:
        return list_all(self._api, path, lambda raw: raw)


def _failure(raw: Mapping[str, Any]) -> Reply:
    """Return the answer that an ERROR event stands for: 410 for an expired version in any form."""
    expired = raw.get("reason") in ("Expired", "Gone")
    return Reply(status=410 if expired else int(raw.get("code") or 500), body=raw)


def version_number(version: object) -> int:
    """Return a resourceVersion as a number, which it is for all kinds that Dovetail watches.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions and
    https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5504-comparable-resource-version
    (2026-11-24).

    Raises:
        UnavailableError: If it is no number.
    """
    text = str(version or "")
    if not (text.isascii() and text.isdigit()):
        raise UnavailableError(f"resourceVersion {text!r} is no number")
    return int(text)
