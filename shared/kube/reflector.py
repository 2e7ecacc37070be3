"""A local copy of a collection, kept up to date by list and watch.

The client library's own watchers lose deletions, repeat events or overload a failing server, so
this is written out: list in pages, watch from the list's version, resume where the stream ended,
list again when the server no longer has that version, and back off after each watch without events.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
(2026-08).
"""

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from shared.kube.api import Decode, ExpiredError, KubeApi, Stream
from shared.kube.lists import ListWatch, WatchEvent
from shared.model.errors import AutoscalerError, NotFoundError, RetryableError, UnavailableError

FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 30.0
HEALTHY_SECONDS: Final = 5.0
WATCH_SECONDS: Final = (300, 400)
PAGE_SIZE: Final = 100
# After so many fruitless watches in a row the version itself may be wrong.
_FAILURES_BEFORE_LIST: Final = 5
_LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")


class ReflectorOptions(Struct, frozen=True, kw_only=True):
    """Options of a reflector; tests replace most of them.

    Attributes:
        optional: Whether the cluster need not define the kind: there are no objects then, and it
            is listed again at long intervals.
        page_size: Objects per page of a list, which are in memory at once while listing.
        decode: Reads a page; it may leave out fields that `project` does not read.
        clock: Seconds, monotonic.
        spread: Random numbers from 0 to 1, for jitter.
        pause: Waits for seconds and returns True when the wait was ended by `stop`.
    """

    optional: bool = False
    page_size: int = PAGE_SIZE
    decode: Decode = json.loads
    clock: Callable[[], float] = time.monotonic
    spread: Callable[[], float] = random.random
    pause: Callable[[float], bool] | None = None


_DEFAULT: Final = ReflectorOptions()


class Reflector(Generic[T]):
    """Keeps a copy of a collection and reports each change of it, in one thread.

    Args:
        path: Path of the collection, such as `/api/v1/pods`.
        project: Returns the value to keep of a raw object, which must not keep the object itself.
        changed: Called with (old, new) for each change: old is None for a new object, new is None
            for a deleted object. Equal values are no change.
        synced: Called once, when the first list is complete.
        served: Called each time the API server has served a list or a watch, or has answered that
            an optional kind does not exist.
        options: Page size, time and randomness.
    """

    def __init__(  # noqa: PLR0913 -- three of them by keyword
        self,
        api: KubeApi,
        path: str,
        project: Callable[[Mapping[str, Any]], T],
        changed: Callable[[T | None, T | None], None],
        *,
        synced: Callable[[], None] = lambda: None,
        served: Callable[[], None] = lambda: None,
        options: ReflectorOptions = _DEFAULT,
    ) -> None:
        self._source: ListWatch[Mapping[str, Any]] = ListWatch(
            api, path, lambda raw: raw, most=options.page_size, decode=options.decode
        )
        self._path = path
        self._project = project
        self._changed = changed
        self._report_synced = synced
        self._report_served = served
        self._options = options
        self._stopped = threading.Event()
        self._pause = options.pause or self._stopped.wait
        self._known: dict[str, T] = {}
        self._version = ""
        self._delay = FIRST_DELAY
        self._stream: Stream | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.has_synced = False

    def __len__(self) -> int:
        return len(self._known)

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start in a new thread."""
        self._thread = threading.Thread(
            target=self.run, name=f"reflector {self._path}", daemon=True
        )
        self._thread.start()

    def stop(self, wait: timedelta = timedelta(seconds=1)) -> None:
        """Stop: a wait or a read that is under way ends at once."""
        self._stopped.set()
        with self._lock:
            if self._stream is not None:
                self._stream.interrupt()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(wait.total_seconds())

    def run(self) -> None:
        """List and watch until `stop` is called."""
        failures = 0
        while not self._stopped.is_set():
            fruitful = False
            try:
                if not self._version:
                    self._list()
                fruitful = self._stopped.is_set() or self._watch()
            except ExpiredError as error:
                _LOG.info("%s: list again: %s", self._path, error)
                self._version = ""
            except NotFoundError as error:
                self._absent(error)
            except AutoscalerError as error:
                if not self._stopped.is_set():
                    _LOG.warning("%s", error)
                    fruitful = self._back_off_at_least(error)
            failures = 0 if fruitful else failures + 1
            if failures >= _FAILURES_BEFORE_LIST:
                failures, self._version = 0, ""
            if not fruitful and self._pause(self._next_delay()):
                return

    def _list(self) -> None:
        """Update the copy by a list; objects that are not in the list are gone."""
        seen = set()
        for page in self._source.pages():
            for raw in page:
                seen.add(self._put(raw))
            if self._stopped.is_set():
                return
        self._keep_only(seen)
        self._version = self._source.version
        self._report_served()

    def _absent(self, error: NotFoundError) -> None:
        """Handle that the cluster does not define the kind."""
        self._version = ""
        if not self._options.optional:
            _LOG.warning("%s", error)
            return
        self._keep_only(())
        self._delay = LONGEST_DELAY
        self._report_served()

    def _keep_only(self, uids: Collection[str]) -> None:
        """Remove objects that are not in a complete list."""
        for uid in [value for value in self._known if value not in uids]:
            self._changed(self._known.pop(uid), None)
        if not self.has_synced:
            self.has_synced = True
            self._report_synced()

    def _watch(self) -> bool:
        """Follow one watch to its end; return whether it was fruitful.

        It was when it brought an event or lasted for a while: only then the backoff is reset.
        """
        began = self._options.clock()
        shortest, longest = WATCH_SECONDS
        seconds = shortest + int((longest - shortest) * self._options.spread())
        stream = self._source.watch(self._version, seconds + 15.0, seconds)
        self._report_served()
        fruitful = False
        try:
            if not self._opened(stream):
                return True
            for event in self._source.events(stream):
                fruitful = self._apply(event) or fruitful
        except UnavailableError as error:
            if self._stopped.is_set():
                return True
            _LOG.info("%s", error)
        finally:
            if fruitful or self._options.clock() - began >= HEALTHY_SECONDS:
                fruitful = True
                self._delay = FIRST_DELAY
            with self._lock:
                self._stream = None
            stream.close()
        return fruitful

    def _opened(self, stream: Stream) -> bool:
        with self._lock:
            self._stream = stream
        return not self._stopped.is_set()

    def _apply(self, event: WatchEvent[Mapping[str, Any]]) -> bool:
        """Apply an event; return whether it was a change, not a bookmark or a repeat."""
        raw, version = event.value, str(event.version)
        is_change = raw is not None and version != self._version
        if raw is not None and not event.gone:
            self._put(raw)
        elif raw is not None and (uid := _uid(raw)) in self._known:
            self._changed(self._known.pop(uid), None)
        self._version = version
        return is_change

    def _put(self, raw: Mapping[str, Any]) -> str:
        """Store an object's projection, report it if it changed, and return the object's uid."""
        uid = _uid(raw)
        try:
            new = self._project(raw)
        except (KeyError, TypeError, ValueError, AttributeError):
            # One malformed object must not end the watch of all others.
            _LOG.exception("%s: object %s cannot be read", self._path, uid)
            return uid
        old = self._known.get(uid)
        if old != new:
            self._known[uid] = new
            self._changed(old, new)
        return uid

    def _back_off_at_least(self, error: AutoscalerError) -> bool:
        """Wait at least for the delay that the server asks for; return False: not fruitful."""
        if isinstance(error, RetryableError) and error.delay is not None:
            self._delay = max(self._delay, min(error.delay.total_seconds(), LONGEST_DELAY))
        return False

    def _next_delay(self) -> float:
        """Return the next wait, between half and all of a delay that doubles each time."""
        delay = self._delay
        self._delay = min(delay * 2, LONGEST_DELAY)
        return delay * (0.5 + self._options.spread() / 2)


def _uid(raw: Mapping[str, Any]) -> str:
    """Return the key that identifies an object, also against a later object of the same name."""
    metadata = raw.get("metadata") or {}
    return str(metadata.get("uid") or f"{metadata.get('namespace')}/{metadata.get('name')}")
