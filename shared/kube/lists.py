"""Lists, page by page; each page is decoded before the next is fetched."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from shared.kube.api import TOO_LARGE, Decode, ExpiredError, KubeApi, Query, raise_unless_ok
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


class Pages:
    """The pages of one list.

    The size of each page follows from the bytes of the pages before: objects of a few hundred
    kilobytes come a few at a time, small objects in fewer requests. A page that is too large to be
    read is requested again with fewer objects.

    Args:
        size: The most objects of the first page.
        most: The most objects of a later page.

    Attributes:
        version: The list's resourceVersion, known after the first page.
    """

    def __init__(
        self,
        api: KubeApi,
        path: str,
        query: Query = (),
        size: int = PAGE_SIZE,
        most: int = MOST_PAGE_SIZE,
        *,
        decode: Decode = json.loads,
    ) -> None:
        self._api = api
        self._path = path
        self._query = tuple(query)
        self._size = size
        self._most = most
        self._decode = decode
        self.version = ""

    def __iter__(self) -> Iterator[list[Mapping[str, Any]]]:
        """Yield the items of each page.

        Raises:
            ExpiredError: If the list took so long that its continue token is no longer served.
            UnavailableError: If the list has too many pages or bytes, or an object is too large.
        """
        token, count, size_bytes = "", 0, 0
        for _ in range(MOST_PAGES):
            query = [*self._query, ("limit", str(self._size))]
            if token:
                query.append(("continue", token))
            reply = self._api.send("GET", self._path, query=query, decode=self._decode)
            if reply.status == TOO_LARGE and self._size > 1:
                self._size = max(self._size // _SMALLER, 1)
                self._most = self._size
                continue
            raise_unless_ok(reply, f"GET {self._path}")
            metadata = reply.body.get("metadata") or {}
            self.version = str(metadata.get("resourceVersion", ""))
            items = reply.body.get("items") or ()
            yield [item for item in items if isinstance(item, Mapping)]
            token = metadata.get("continue") or ""
            if not token:
                return
            count, size_bytes = count + len(items), size_bytes + reply.size_bytes
            if size_bytes > MOST_LIST_BYTES:
                raise UnavailableError(f"{self._path}: more than {MOST_LIST_BYTES} bytes")
            if count:
                fitting = PAGE_BYTES * count // max(size_bytes, 1)
                self._size = max(min(fitting, self._most), 1)
        raise UnavailableError(f"{self._path}: more than {MOST_PAGES} pages")


def list_all(
    api: KubeApi,
    path: str,
    project: Callable[[Mapping[str, Any]], T],
    query: Query = (),
    each_page: EachPage = nothing,
    *,
    decode: Decode = json.loads,
) -> list[T]:
    """Return the projection of every item, in the server's order.

    A list whose continue token expires meanwhile starts again.

    Args:
        each_page: Called after each page; an error that it raises ends the list.

    Raises:
        UnavailableError: If that happens three times.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        found: list[T] = []
        try:
            for page in Pages(api, path, query, decode=decode):
                found.extend(project(entry) for entry in page)
                each_page()
        except ExpiredError as error:
            if attempt == _ATTEMPTS:
                raise UnavailableError(f"{path}: the list takes too long: {error}") from error
            continue
        break
    return found


class KubeReader:
    """Reads single objects and lists from one API server.

    Args:
        api: The cluster's API server.
    """

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
