"""Lists a collection of an API server, and watches what happened since a version."""

from collections.abc import Iterator
from typing import Final, Protocol, TypeVar

from typing_extensions import override
from urllib3.exceptions import ReadTimeoutError

from shared.kube.api import Stream, raise_unless_ok
from shared.kube.lists import ListWatch, WatchEvent, version_number
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

T = TypeVar("T")


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


class KubeFeed(ListWatch[T], Feed[T]):
    """Implements Feed over HTTP."""

    @override
    def listed(self, each_page: EachPage) -> tuple[list[T], int]:
        return self.all(each_page), version_number(self.version)

    @override
    def head(self) -> tuple[int, int | None]:
        """Return the version that a list would have now, and its number of values if known.

        A list of one object is enough; servers count only a list without selector.

        The server answers once its cache has that version, and a watch begins with all that its
        cache has. Source:
        https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2340-Consistent-reads-from-cache
        (in Kubernetes 1.31 and newer, 2026-11-24).
        """
        query = [*self._query, ("limit", "1")]
        reply = self._api.send("GET", self._path, query=query, decode=self._decode)
        raise_unless_ok(reply, f"GET {self._path}")
        metadata = reply.body.get("metadata") or {}
        left = metadata.get("remainingItemCount")
        count = len(reply.body.get("items") or ()) + left if isinstance(left, int) else None
        return version_number(metadata.get("resourceVersion")), count

    @override
    def since(self, version: int, *, again: bool = False) -> Iterator[WatchEvent[T]]:
        stream, silence_ends = self._opened(
            str(version), _QUIET_AGAIN_SECONDS if again else QUIET_SECONDS
        )
        try:
            yield from self.events(stream)
        except UnavailableError as error:
            if not (silence_ends and isinstance(error.__cause__, ReadTimeoutError)):
                raise
        finally:
            stream.close()

    def _opened(self, version: str, quiet_seconds: float) -> tuple[Stream, bool]:
        """Return the watch, and whether silence means that it has sent everything."""
        try:
            return self.watch(version, quiet_seconds), True
        except UnavailableError:
            return self.watch(version, _PATIENT_SECONDS, _ENDED_SECONDS), False
