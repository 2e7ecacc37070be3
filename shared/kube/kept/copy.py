"""A collection that is kept from one reading to the next, and brought up to date by a watch.

The first reading begins with the copy that sweep has left, or lists. Later ones watch from the
version that the copy has: what was read before is neither sent nor decoded again. The collection is
listed anew where the server has forgotten that version (410) or is at an older one itself (it was
restored from a backup) or has another number of objects, where the watch cannot be read, and each
hour; a small one each time.

Before each watch the version is asked that the server has now: the copy is up to date once that
version has come, or a watch brings nothing.

A copy is for decisions and never for a write: each write has a condition of its own, on the
object's resourceVersion or on rows of the ledger.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar

from shared.kube.api import ExpiredError
from shared.kube.kept.feed import Feed
from shared.kube.kept.stored import MOST_AGE, Shelf, Stored
from shared.model.errors import UnauthorizedError, UnavailableError
from shared.ports.cluster import EachPage, nothing

# Fewer objects are listed in less time than it takes to know that a watch is silent.
SMALL: Final = 1000
# Who writes the copy for others lists before theirs is too old.
_WRITER_AGE: Final = MOST_AGE * 5 / 6
# So many events are like a page.
_EACH: Final = 250
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
        feed: Shows it.
        key: What tells a value from all others; they are sorted by it.
        now: The time.
        small: So few values are listed each time.
        shelf: Where a copy lies that outlives processes, None for nowhere.

    Attributes:
        followed: Whether the last reading was by a watch, and not a list.
    """

    def __init__(
        self,
        feed: Feed[T],
        key: Callable[[T], Any],
        now: Callable[[], datetime],
        small: int,
        shelf: Shelf[T] | None,
    ) -> None:
        self._feed = feed
        self._key = key
        self._now = now
        self._shelf = shelf
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
            each_page: Called after each page or some hundred events; what it raises ends it.

        Raises:
            UnavailableError: If the server cannot be read now.
        """
        if self._is_small:
            self.forget()
        else:
            self.followed = self._is_current() and self._followed(each_page)
            self.followed = self.followed or (self._taken() and self._followed(each_page))
        if not self._version:
            self._list(each_page)
        if self._sorted is None:
            self._sorted = tuple(sorted(self._known.values(), key=self._key))
        self._is_small = len(self._sorted) < self._small
        return self._sorted

    def relist(self, each_page: EachPage = nothing) -> tuple[T, ...]:
        """Drop the copy and return all values as a list shows them, sorted."""
        self.forget()
        self._list(each_page)
        self._sorted = tuple(sorted(self._known.values(), key=self._key))
        return self._sorted

    def forget(self) -> None:
        """Drop the copy: the next reading begins anew."""
        self._known, self._sorted, self._version = {}, (), 0
        self._listed_at, self.followed = None, False

    def save(self) -> bool:
        """Leave the copy for others, as it was last read; return whether it is worth it."""
        self._most_age = _WRITER_AGE
        if self._shelf is None or self._is_small or self._listed_at is None:
            return False
        stored = Stored(values=self.last, version=self._version, listed_at=self._listed_at)
        return self._shelf.put(stored)

    def _is_current(self) -> bool:
        """Return whether there is a copy, and it was listed within the hour."""
        if self._listed_at is None:
            return False
        if abs(self._now() - self._listed_at) < self._most_age:
            return True
        self.forget()
        return False

    def _taken(self) -> bool:
        """Begin with the copy that lies on the shelf; return whether one does."""
        stored = self._shelf.take(self._now()) if self._shelf is not None else None
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
        """Apply what happened since the copy was read; where it cannot be, drop the copy.

        A role of the user's own may list and not watch.
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
        """Apply what happened up to a version; all has come once a watch brings nothing."""
        begun, count = -1, 0
        while begun < self._version < now:
            begun = self._version
            for change in self._feed.since(begun, again=count > 0):
                if change.version > now:
                    # Events come in order. Without this one the number of objects can be compared.
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
