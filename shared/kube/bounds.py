"""Bounds of one answer: how long it may take in total, and how many bytes it may have.

The time-out of a socket bounds each single read, so that a server which sends a byte now and then
blocks its caller for ever. Here a watchdog ends the connection.
"""

import contextlib
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import BaseHTTPResponse, HTTPResponse

_CHUNK_BYTES: Final = 65_536
_LEAST_SECONDS: Final = 0.001


class TooLargeError(Exception):
    """An answer has too many bytes."""


class TooSlowError(OSError):
    """An answer takes longer than it may in total."""


class _Watchdog:
    """Ends connections that take too long, from one thread for all of them.

    A `threading.Timer` for each answer would be a thread for each: that doubles the cost of a call.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: dict[int, tuple[float, Callable[[], None]]] = {}
        self._numbers = itertools.count()
        self._awake_at = math.inf
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def ended_after(self, seconds: float, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` from another thread unless the block ends in time; its errors are dropped.

        `end` is not called after the block: another call may use the connection then.
        """
        number, until = next(self._numbers), time.monotonic() + seconds
        with self._changed:
            self._running[number] = (until, end)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="bounds", daemon=True)
                self._thread.start()
            elif until < self._awake_at:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._running.pop(number, None)

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for number, (until, end) in list(self._running.items()):
                    if until <= now:
                        del self._running[number]
                        # Most errors mean that the connection has already ended; in any case the
                        # other connections must still be ended.
                        with contextlib.suppress(Exception):
                            end()
                self._awake_at = min(
                    [until for until, _ in self._running.values()], default=math.inf
                )
                self._changed.wait(None if self._awake_at == math.inf else self._awake_at - now)


_WATCHDOG: Final = _Watchdog()


class _BoundedConnection(HTTPConnection):
    """A connection whose time-out bounds all headers of an answer together."""

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        """Return the answer once its headers are complete.

        Raises:
            OSError: If they take longer than the time-out.
        """
        with _WATCHDOG.ended_after(self.timeout or _LEAST_SECONDS, self._end):
            return super().getresponse()

    def _end(self) -> None:
        self.sock.shutdown(2)


class _BoundedTlsConnection(_BoundedConnection, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _BoundedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _BoundedTlsConnection


POOLS: Final = {"http": _Pool, "https": _TlsPool}


def read_bounded(response: BaseHTTPResponse, *, until: float, most_bytes: int) -> bytes:
    """Return the body of an answer, decompressed.

    Args:
        response: An answer whose headers have been read.
        until: When it must be complete, on the clock of `time.monotonic`.
        most_bytes: The most bytes it may have.

    Raises:
        TooLargeError: If it has more; the rest is not read.
        TooSlowError: If it is not complete in time.
    """
    parts: list[bytes] = []
    size_bytes = 0
    with _WATCHDOG.ended_after(max(until - time.monotonic(), _LEAST_SECONDS), response.shutdown):
        while part := response.read1(_CHUNK_BYTES):
            size_bytes += len(part)
            if size_bytes > most_bytes:
                raise TooLargeError(f"more than {most_bytes} bytes")
            parts.append(part)
    # An answer without a length ends with its connection: the watchdog may have closed it.
    if time.monotonic() >= until:
        raise TooSlowError("the answer takes too long")
    return b"".join(parts)
