"""Bounds of one answer: how long it may take in total, and how many bytes it may have.

A time-out of a socket bounds each read alone, so that a server which sends a byte now and then
keeps its caller for ever. Here a timer ends the connection.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import BaseHTTPResponse, HTTPResponse

_CHUNK_BYTES: Final = 65_536


class TooLargeError(Exception):
    """An answer has more bytes than it may have."""


class TooSlowError(OSError):
    """An answer takes longer than it may in total."""


class _BoundedConnection(HTTPConnection):
    """A connection whose time-out bounds all headers of an answer together."""

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        """Return the answer once its headers are complete.

        Raises:
            OSError: If they take longer than the time-out.
        """
        with _ended_after(self.timeout, self._end):
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
        response: Whose headers have been read.
        until: When it must be complete, as `time.monotonic` tells it.
        most_bytes: How large it may be.

    Raises:
        TooLargeError: If it is larger; the rest is not read.
        TooSlowError: If it is not complete in time.
    """
    parts: list[bytes] = []
    size_bytes = 0
    with _ended_after(max(until - time.monotonic(), 0.001), response.shutdown):
        while part := response.read1(_CHUNK_BYTES):
            size_bytes += len(part)
            if size_bytes > most_bytes:
                raise TooLargeError(f"more than {most_bytes} bytes")
            parts.append(part)
    # An answer without a length ends with its connection, which either side may close.
    if time.monotonic() >= until:
        raise TooSlowError("the answer takes too long")
    return b"".join(parts)


@contextlib.contextmanager
def _ended_after(seconds: float | None, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` from another thread unless the block is left in time; its errors are dropped."""

    def end_quietly() -> None:
        # These say that the connection has ended by itself.
        with contextlib.suppress(ValueError, RuntimeError, OSError, AttributeError):
            end()

    timer = threading.Timer(seconds or 0.001, end_quietly)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
