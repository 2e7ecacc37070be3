"""A collection that is kept from one reading to the next, and brought up to date by a watch.

The first reading lists it. Later ones watch from the version that the copy has: what was read
before is neither sent nor decoded again. Where the server has forgotten that version (410), or the
watch cannot be read, the collection is listed anew; so is a small one each time.

Before each watch the head of a list is read, which tells the version that the server has now. The
server answers it once its cache has that version, and a watch begins with all that its cache has:
the copy is up to date once that version has come, or nothing more comes.
Source: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2340-Consistent-reads-from-cache
(in Kubernetes 1.31 and newer, 2026-11-24).

A copy is for decisions and never for a write: each write has a condition of its own, on the
object's resourceVersion or on rows of the ledger.

Versions are compared as numbers, which an API server's are for all built-in kinds.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions and
https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5504-comparable-resource-version
(2026-11-24).
"""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from urllib3.exceptions import ReadTimeoutError

from shared.kube.api import Decode, ExpiredError, KubeApi, Query, Reply, Stream, error_for
from shared.kube.lists import Pages
from shared.model.errors import UnavailableError
from shared.ports.cluster import EachPage, nothing

# Fewer objects are listed in less time than it takes to know that a watch is silent.
SMALL: Final = 1000
# A watch that is silent for so long has sent what had happened when it was asked for.
QUIET_SECONDS: Final = 0.3
# Where its answer does not even begin by then, the server ends the watch itself.
_ENDED_SECONDS: Final = 1
_PATIENT_SECONDS: Final = 15.0
# So many events are like a page.
_EACH: Final = 250
_ATTEMPTS: Final = 3
_LOG: Final = logging.getLogger(__name__)


class Versioned(Protocol):
    """What is kept of an object."""

    @property
    def uid(self) -> str:
        """What tells it from all others."""
        ...

    @property
    def resource_version(self) -> str:
        """Of its last change."""
        ...


T = TypeVar("T", bound=Versioned)


class KeptCopy(Generic[T]):
    """One collection of one cluster.

    Args:
        api: The API server.
        path: Of the collection, such as `/api/v1/pods`.
        selector: Field selector of what is kept, empty for all.
        page: Turns the text of a page into objects.
        project: Makes of each raw object the value that is kept.
        key: What tells a value from all others; they are sorted by it.

    Attributes:
        followed: Whether the last reading was by a watch, and not a list.
    """

    def __init__(
        self,
        api: KubeApi,
        path: str,
        selector: str,
        page: Decode,
        project: Callable[[Mapping[str, Any]], T],
        key: Callable[[T], Any],
    ) -> None:
        self._api = api
        self._path = path
        self._query: Query = (("fieldSelector", selector),) if selector else ()
        self._page = page
        self._project = project
        self._key = key
        self._known: dict[Any, T] = {}
        self._sorted: tuple[T, ...] | None = ()
        self._version = 0
        self.followed = False

    @property
    def last(self) -> tuple[T, ...]:
        """The values as they were last read."""
        return self._sorted or ()

    def read(self, each_page: EachPage = nothing) -> tuple[T, ...]:
        """Return all values as they are now, sorted.

        Args:
            each_page: Called after each page or some hundred events; what it raises ends it.

        Raises:
            UnavailableError: If the server cannot be read now.
        """
        if len(self._known) < SMALL:
            self.forget()
        if self._version:
            try:
                self._follow(each_page)
            except (ExpiredError, UnavailableError) as error:
                _LOG.info("%s: list again: %s", self._path, error)
                self.forget()
        self.followed = bool(self._version)
        if not self.followed:
            self._list(each_page)
        if self._sorted is None:
            self._sorted = tuple(sorted(self._known.values(), key=self._key))
        return self._sorted

    def forget(self) -> None:
        """Drop the copy: the next reading lists."""
        self._known, self._sorted, self._version = {}, (), 0

    def _list(self, each_page: EachPage) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            pages = Pages(self._api, self._path, self._query, decode=self._page)
            known: dict[Any, T] = {}
            version = 0
            try:
                for page in pages:
                    known.update((self._key(value), value) for value in map(self._project, page))
                    # Of the first page: a list that takes long may go on at a later version.
                    version = version or _number(pages.version)
                    each_page()
            except ExpiredError as error:
                if attempt == _ATTEMPTS:
                    raise UnavailableError(
                        f"{self._path}: the list takes too long: {error}"
                    ) from error
                continue
            break
        self._known, self._sorted, self._version = known, None, version

    def _follow(self, each_page: EachPage) -> None:
        """Apply what happened since the copy was read.

        Raises:
            ExpiredError: If the server has forgotten the version of the copy.
            UnavailableError: If the watch cannot be read.
        """
        now = self._version_now()
        if now <= self._version:
            return
        stream, silence_ends = self._opened()
        try:
            for count, line in enumerate(stream.lines(), start=1):
                self._take(line)
                if count % _EACH == 0:
                    each_page()
                if self._version >= now:
                    return
        except UnavailableError as error:
            if not (silence_ends and isinstance(error.__cause__, ReadTimeoutError)):
                raise
        finally:
            stream.close()

    def _version_now(self) -> int:
        """Return the version that a list would have now: nothing of the list but its head."""
        query = [*self._query, ("limit", "1")]
        reply = self._api.send("GET", self._path, query=query, decode=self._page)
        if not reply.ok:
            raise error_for(reply, f"GET {self._path}")
        return _number((reply.body.get("metadata") or {}).get("resourceVersion"))

    def _opened(self) -> tuple[Stream, bool]:
        """Return the watch, and whether it has sent all once it is silent."""
        query = [
            *self._query,
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", str(self._version)),
        ]
        try:
            return self._api.stream(self._path, query, read_seconds=QUIET_SECONDS), True
        except UnavailableError:
            ended = [*query, ("timeoutSeconds", str(_ENDED_SECONDS))]
            return self._api.stream(self._path, ended, read_seconds=_PATIENT_SECONDS), False

    def _take(self, line: bytes) -> None:
        """Apply one line of a watch."""
        try:
            event = json.loads(line)
            kind, raw = event["type"], event["object"]
            version = _number((raw.get("metadata") or {}).get("resourceVersion"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnavailableError(f"watch {self._path}: not an event: {line[:80]!r}") from error
        if kind == "ERROR":
            gone = raw.get("reason") in ("Expired", "Gone")
            status = 410 if gone else int(raw.get("code") or 500)
            error_reply = Reply(status=status, body=raw)
            raise error_for(error_reply, f"watch {self._path}")
        if kind != "BOOKMARK":
            value = self._project(raw)
            self._sorted = None
            if kind == "DELETED":
                self._known.pop(self._key(value), None)
            else:
                self._known[self._key(value)] = value
        self._version = max(self._version, version)


def _number(version: object) -> int:
    """Return a resourceVersion as a number.

    Raises:
        UnavailableError: If it is none.
    """
    text = str(version or "")
    if not (text.isascii() and text.isdigit()):
        raise UnavailableError(f"resourceVersion {text!r} is no number")
    return int(text)
