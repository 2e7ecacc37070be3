"""Lists a collection of an API server, and watches what happened since a version.

Versions are compared as numbers, which they are for all built-in kinds.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions and
https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5504-comparable-resource-version
(2026-11-24).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from urllib3.exceptions import ReadTimeoutError

from shared.kube.api import Decode, ExpiredError, KubeApi, Query, Reply, Stream, error_for
from shared.kube.lists import Pages
from shared.model.errors import UnavailableError
from shared.ports.cluster import EachPage

# A watch that is silent for so long has sent all that had happened when it was requested.
QUIET_SECONDS: Final = 0.3
# A pause among many events ends it, too. So the watch is requested again: all that had happened
# then comes with the beginning of its answer.
_QUIET_AGAIN_SECONDS: Final = 0.1
# Where its answer does not even begin by then, the watch is requested with a server-side time-out.
_ENDED_SECONDS: Final = 1
_PATIENT_SECONDS: Final = 15.0
_ATTEMPTS: Final = 3

T = TypeVar("T")


class WatchEvent(NamedTuple, Generic[T]):
    """A change of one object.

    Attributes:
        value: The object; None for a bookmark, which has only a version.
        gone: Whether it is no longer in the collection.
    """

    version: int
    value: T | None = None
    gone: bool = False


class Feed(Protocol[T]):
    """Lists and watches one collection of one API server."""

    def listed(self, each_page: EachPage) -> tuple[list[T], int]:
        """Return all values, and a version that is not newer than that of any value's page.

        Raises:
            UnavailableError: If the server cannot be read now.
        """
        ...

    def head(self) -> tuple[int, int | None]:
        """Return the version that a list would have now, and its number of values if known.

        Raises:
            UnavailableError: If the server cannot be read now.
        """
        ...

    def since(self, version: int, *, again: bool = False) -> Iterator[WatchEvent[T]]:
        """Yield the events after a version, in order, until no more come for a while.

        Args:
            again: Whether it was called a moment ago and yielded events.

        Raises:
            ExpiredError: If the server no longer has the version.
            UnavailableError: If the watch cannot be read.
        """
        ...


class KubeFeed(Generic[T]):
    """Implements Feed over HTTP.

    Args:
        api: The API server.
        path: Path of the collection, such as `/api/v1/pods`.
        selector: Field selector of the objects, empty for all.
        page: Decodes the text of a page.
        project: Returns the value to keep of a raw object.
    """

    def __init__(
        self,
        api: KubeApi,
        path: str,
        selector: str,
        page: Decode,
        project: Callable[[Mapping[str, Any]], T],
    ) -> None:
        self._api = api
        self._path = path
        self._query: Query = (("fieldSelector", selector),) if selector else ()
        self._page = page
        self._project = project

    def listed(self, each_page: EachPage) -> tuple[list[T], int]:
        """Return all values, and the version of the first page: a long list may end at a later one.

        Raises:
            UnavailableError: If the server cannot be read now.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            pages = Pages(self._api, self._path, self._query, decode=self._page)
            values: list[T] = []
            version = 0
            try:
                for page in pages:
                    values.extend(map(self._project, page))
                    version = version or _number(pages.version)
                    each_page()
            except ExpiredError as error:
                if attempt == _ATTEMPTS:
                    raise UnavailableError(
                        f"{self._path}: the list takes too long: {error}"
                    ) from error
                continue
            break
        return values, version

    def head(self) -> tuple[int, int | None]:
        """Return the version that a list would have now, and its number of values if known.

        A list of one object is enough; servers count only a list without selector.

        The server answers once its cache has that version, and a watch begins with all that its
        cache has. Source:
        https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2340-Consistent-reads-from-cache
        (in Kubernetes 1.31 and newer, 2026-11-24).

        Raises:
            UnavailableError: If the server cannot be read now.
        """
        query = [*self._query, ("limit", "1")]
        reply = self._api.send("GET", self._path, query=query, decode=self._page)
        if not reply.ok:
            raise error_for(reply, f"GET {self._path}")
        metadata = reply.body.get("metadata") or {}
        left = metadata.get("remainingItemCount")
        count = len(reply.body.get("items") or ()) + left if isinstance(left, int) else None
        return _number(metadata.get("resourceVersion")), count

    def since(self, version: int, *, again: bool = False) -> Iterator[WatchEvent[T]]:
        """Yield the events after a version, in order, until the watch is silent.

        Args:
            again: Whether it was called a moment ago and yielded events.

        Raises:
            ExpiredError: If the server no longer has the version.
            UnavailableError: If the watch cannot be read.
        """
        quiet_seconds = _QUIET_AGAIN_SECONDS if again else QUIET_SECONDS
        stream, silence_ends = self._opened(version, quiet_seconds)
        try:
            for line in stream.lines():
                yield self._event_of(line)
        except UnavailableError as error:
            if not (silence_ends and isinstance(error.__cause__, ReadTimeoutError)):
                raise
        finally:
            stream.close()

    def _opened(self, version: int, quiet_seconds: float) -> tuple[Stream, bool]:
        """Return the watch, and whether silence means that it has sent everything."""
        query = [
            *self._query,
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", str(version)),
        ]
        try:
            return self._api.stream(self._path, query, read_seconds=quiet_seconds), True
        except UnavailableError:
            ended = [*query, ("timeoutSeconds", str(_ENDED_SECONDS))]
            return self._api.stream(self._path, ended, read_seconds=_PATIENT_SECONDS), False

    def _event_of(self, line: bytes) -> WatchEvent[T]:
        """Return the event in one line of a watch."""
        try:
            event = json.loads(line)
            kind, raw = event["type"], event["object"]
            metadata = raw.get("metadata") or {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnavailableError(f"watch {self._path}: not an event: {line[:80]!r}") from error
        if kind == "ERROR":
            gone = raw.get("reason") in ("Expired", "Gone")
            status = 410 if gone else int(raw.get("code") or 500)
            error_reply = Reply(status=status, body=raw)
            raise error_for(error_reply, f"watch {self._path}")
        version = _number(metadata.get("resourceVersion"))
        if kind == "BOOKMARK":
            return WatchEvent(version)
        return WatchEvent(version, self._project(raw), gone=kind == "DELETED")


def _number(version: object) -> int:
    """Return a resourceVersion as a number.

    Raises:
        UnavailableError: If it is no number.
    """
    text = str(version or "")
    if not (text.isascii() and text.isdigit()):
        raise UnavailableError(f"resourceVersion {text!r} is no number")
    return int(text)
