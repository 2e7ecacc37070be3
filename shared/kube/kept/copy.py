"""A collection that is kept from one reading to the next, and updated by a watch.

The first reading starts from the copy that sweep saved; without one, it lists the collection. Later
readings watch from the resourceVersion of the copy: what was read before is neither sent nor
decoded again. The collection is listed again each hour, and when the server no longer has that
resourceVersion (410), has an older one (it was restored from a backup) or another number of
objects, or when the watch cannot be read. A small collection is listed each time.

Before each watch, the current resourceVersion of the collection is read: the copy is up to date
once that one has arrived, or a watch brings nothing.

A copy is for decisions and never for a write: each write has its own condition, on the object's
resourceVersion or on rows of the ledger.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar

from shared.kube.api import ExpiredError
from shared.kube.kept.feed import Feed
from shared.kube.kept.stored import MOST_AGE, CopyStore, StoredCopy
from shared.model.errors import UnauthorizedError, UnavailableError
from shared.ports.cluster import EachPage, nothing

# Up to this many objects are listed: a watch takes longer to show that nothing has changed.
SMALL: Final = 1000
# The process that writes the copy for others lists again before the copy is too old for them.
_WRITER_AGE: Final = MOST_AGE * 5 / 6
# The lease is looked at after each page of a list, and after this many events of a watch.
_EACH: Final = 250
_LOG: Final = logging.getLogger(__name__)


class Versioned(Protocol):
    """The kept value of an object."""

    @property
    def uid(self) -> str:
        """The uid of the object."""
        ...

    @property
    def resource_version(self) -> str:
        """The version of its last change."""
        ...


T = TypeVar("T", bound=Versioned)


class KeptCopy(Generic[T]):
    """The copy of one collection of one cluster.

    Args:
        key: Returns the unique sort key of a value.
        small: A collection with fewer values is listed each time.
        store: Stores a copy that outlives processes; None for no store.

    Attributes:
        followed: Whether the last reading was by a watch, not by a list.
    """

    def __init__(
        self,
        feed: Feed[T],
        key: Callable[[T], Any],
        now: Callable[[], datetime],
        small: int,
        store: CopyStore[T] | None,
    ) -> None:
        self._feed = feed
        self._key = key
        self._now = now
        self._store = store
        self._small = small
        self._known: dict[Any, T] = {}
        self._sorted: tuple[T, ...] | None = ()
        self._version = 0
        self._listed_at: datetime | None = None
        self._most_age = MOST_AGE
        self._is_small = False
        self.followed = False

    @property
    def last(self) -> tuple[T, ...]:
        """The values as they were last read."""
        return self._sorted or ()

    def read(self, each_page: EachPage = nothing) -> tuple[T, ...]:
        """Return all values as they are now, sorted.

        Args:
            each_page: Called after each page or some hundred events; an error that it raises ends
                the reading.

        Raises:
            UnavailableError: If the server cannot be read now.
        """
        if self._is_small:
            self.forget()
        else:
            self.followed = self._is_current() and self._followed(each_page)
            self.followed = self.followed or (self._loaded() and self._followed(each_page))
        if not self._version:
            self._list(each_page)
        if self._sorted is None:
            self._sorted = tuple(sorted(self._known.values(), key=self._key))
        self._is_small = len(self._sorted) < self._small
        return self._sorted

    def relist(self, each_page: EachPage = nothing) -> tuple[T, ...]:
        """Drop the copy, list again, and return all values, sorted."""
        self.forget()
        self._list(each_page)
        self._sorted = tuple(sorted(self._known.values(), key=self._key))
        return self._sorted

    def forget(self) -> None:
        """Drop the copy: the next reading starts without one."""
        self._known, self._sorted, self._version = {}, (), 0
        self._listed_at, self.followed = None, False

    def save(self) -> bool:
        """Save the copy for other processes, as it was last read.

        Returns:
            Whether it was saved; a small collection is not.
        """
        self._most_age = _WRITER_AGE
        if self._store is None or self._is_small or self._listed_at is None:
            return False
        stored = StoredCopy(values=self.last, version=self._version, listed_at=self._listed_at)
        return self._store.save(stored)

    def _is_current(self) -> bool:
        """Return whether there is a copy that is not too old; drop one that is."""
        if self._listed_at is None:
            return False
        if abs(self._now() - self._listed_at) < self._most_age:
            return True
        self.forget()
        return False

    def _loaded(self) -> bool:
        """Start from the stored copy; return whether there is one."""
        stored = self._store.load(self._now()) if self._store is not None else None
        if stored is None or not abs(self._now() - stored.listed_at) < self._most_age:
            return False
        self._known = {self._key(value): value for value in stored.values}
        self._sorted, self._version = stored.values, stored.version
        self._listed_at = stored.listed_at
        return True

    def _list(self, each_page: EachPage) -> None:
        begun = self._now()
        values, self._version = self._feed.listed(each_page)
        self._known = {self._key(value): value for value in values}
        self._sorted, self._listed_at, self.followed = None, begun, False

    def _followed(self, each_page: EachPage) -> bool:
        """Apply what happened since the copy was read; drop the copy where that fails.

        A user's own role may allow to list and not to watch.
        """
        try:
            self._follow(each_page)
        except (ExpiredError, UnauthorizedError, UnavailableError) as error:
            _LOG.info("read anew: %s", error)
            self.forget()
            return False
        return True

    def _follow(self, each_page: EachPage) -> None:
        now, count = self._feed.head()
        if now < self._version:
            raise ExpiredError(f"the server is at version {now}, the copy at {self._version}")
        if now > self._version:
            self._catch_up(now, each_page)
        if count is not None and self._version <= now and count != len(self._known):
            raise ExpiredError(f"the server has {count} objects, the copy {len(self._known)}")

    def _catch_up(self, now: int, each_page: EachPage) -> None:
        """Apply what happened up to a version; the copy is complete once a watch brings nothing."""
        begun, count = -1, 0
        while begun < self._version < now:
            begun = self._version
            for change in self._feed.since(begun, again=count > 0):
                if change.version > now:
                    # Events arrive in order, so the copy is that of `now`. This later event is
                    # not applied: the number of objects is compared with that of `now`.
                    self._version = now
                    return
                if change.value is not None:
                    self._apply(change.value, gone=change.gone)
                self._version = max(self._version, change.version)
                count += 1
                if count % _EACH == 0:
                    each_page()
                if self._version == now:
                    return

    def _apply(self, value: T, *, gone: bool) -> None:
        self._sorted = None
        if gone:
            self._known.pop(self._key(value), None)
        else:
            self._known[self._key(value)] = value
