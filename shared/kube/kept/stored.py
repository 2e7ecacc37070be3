"""Copies of collections that outlive a process: written by sweep, read by functions that begin.

A copy that was read is one of this cluster's API server, of this very program, and whole, or it is
not used: then the collection is listed, as without it. No safeguard asks who wrote it.
"""

import hashlib
import logging
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from msgspec import DecodeError, Struct
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import replace

from shared.kube.kept.columns import ColumnsError, decode, encode
from shared.model.errors import AutoscalerError, NotFoundError
from shared.ports.copies import Copies

# A copy is listed anew so often: what no event told and no look at a node found lasts no longer.
MOST_AGE: Final = timedelta(hours=1)
# Level 6 makes 10 % less of it in three times the time; raw, as the checksum is one of all of it.
_LEVEL: Final = 1
_RAW: Final = -15
# No copy is larger: a text that is more when it is unpacked was not written by Dovetail.
_MOST_BYTES: Final = 2**28
_SHARED: Final = Path(__file__).parents[2]
# What makes values of an API server's objects: where any of it is another, so may be the values.
_SOURCES: Final = ("kube/kept", "manifests", "model")
_LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Generic[T]):
    """A collection as it was at a version.

    Attributes:
        values: Sorted.
        listed_at: When it was last listed whole; since then it was followed.
    """

    values: tuple[T, ...]
    version: int
    listed_at: datetime


class ShelfOf(Protocol):
    """Where copies of a cluster lie."""

    def __call__(self, collection: str, kind: type[T], /) -> "Shelf[T] | None":
        """Return the place of a collection's copy; None where none is kept."""
        ...


def no_shelf(_: str, kind: type[T]) -> "Shelf[T] | None":
    """Keep no copies."""
    del kind
    return None


def shelves(copies: Copies, *, cluster: str, server: str) -> ShelfOf:
    """Return the shelves of one cluster.

    Args:
        copies: Of all clusters.
        cluster: Name of the cluster.
        server: What tells its API server from all others, also from a former one of the same name.
    """

    def shelf_of(collection: str, kind: type[T]) -> Shelf[T]:
        source = f"{collection} of {cluster} at {server}"
        return Shelf(copies, f"{cluster}/{form()}/{collection}", source, kind)

    return shelf_of


class UnusableError(ValueError):
    """A copy that must not be used; the text says why."""


class Shelf(Generic[T]):
    """Where the copy of one collection of one cluster lies.

    Args:
        copies: Of all clusters.
        key: Its own.
        source: Cluster, API server and collection.
        kind: Class of its values.
    """

    def __init__(self, copies: Copies, key: str, source: str, kind: type[T]) -> None:
        self._copies = copies
        self._key = key
        self._source = source
        self._kind = kind

    def take(self, now: datetime) -> Stored[T] | None:
        """Return the copy; None, and a line in the log, where there is none that may be used."""
        try:
            return read(self._source, self._kind, self._copies.get(self._key), now)
        except NotFoundError:
            return None
        except (UnusableError, AutoscalerError) as error:
            _LOG.warning("the copy of %s is not used: %s", self._source, error)
            return None

    def put(self, stored: Stored[T]) -> bool:
        """Replace the copy; where that fails a line in the log says so, and the last one stays."""
        try:
            self._copies.put(self._key, written(self._source, self._kind, stored))
        except (ColumnsError, AutoscalerError) as error:
            _LOG.warning("the copy of %s is not written: %s", self._source, error)
            return False
        return True


class _Head(Struct, frozen=True, kw_only=True):
    """What stands before the values, and says whether they may be read.

    Attributes:
        form: Of the program that wrote it.
        source: Cluster, API server and collection.
        digest: SHA-256 of the rest of the head and of the body.
    """

    form: str
    source: str
    version: int
    listed_at: datetime
    digest: bytes = b""


class _Document(Struct, frozen=True, array_like=True):
    head: _Head
    body: bytes


_ENCODER: Final = Encoder()
_DECODER: Final = Decoder(_Document)


def written(source: str, kind: type[T], stored: Stored[T]) -> bytes:
    """Return the document of a copy.

    Args:
        source: Cluster, API server and collection.
        kind: Class of the values.

    Raises:
        ColumnsError: If a value cannot be written.
    """
    packer = zlib.compressobj(_LEVEL, wbits=_RAW)
    body = packer.compress(encode(kind, stored.values)) + packer.flush()
    head = _Head(form=form(), source=source, version=stored.version, listed_at=stored.listed_at)
    return _ENCODER.encode(_Document(_with_digest(head, body), body))


def read(source: str, kind: type[T], document: bytes, now: datetime) -> Stored[T]:
    """Return a copy.

    Args:
        source: Cluster, API server and collection that it must be of.

    Raises:
        UnusableError: If it is torn, of another program, of another source, or too old.
    """
    try:
        found = _DECODER.decode(document)
    except (DecodeError, UnicodeDecodeError) as error:
        raise UnusableError(f"it is no copy: {error}") from error
    head = found.head
    if not _is_of_form(head):
        raise UnusableError("another version of the program wrote it")
    if not _is_of_source(head, source):
        raise UnusableError(f"it is of {head.source}, not of {source}")
    if not _is_whole(head, found.body):
        raise UnusableError("it is torn: its checksum is another")
    if not abs(now - head.listed_at) < MOST_AGE:
        raise UnusableError(f"it was last listed at {head.listed_at:%Y-%m-%d %H:%M:%S}")
    try:
        unpacker = zlib.decompressobj(wbits=_RAW)
        values = decode(kind, unpacker.decompress(found.body, _MOST_BYTES))
    except (ColumnsError, zlib.error) as error:
        raise UnusableError(f"its values cannot be read: {error}") from error
    return Stored(values=values, version=head.version, listed_at=head.listed_at)


def _is_of_form(head: _Head) -> bool:
    return head.form == form()


def _is_of_source(head: _Head, source: str) -> bool:
    return head.source == source


def _is_whole(head: _Head, body: bytes) -> bool:
    return head == _with_digest(head, body)


def _with_digest(head: _Head, body: bytes) -> _Head:
    bare = replace(head, digest=b"")
    return replace(head, digest=hashlib.sha256(_ENCODER.encode(bare) + body).digest())


@cache
def form() -> str:
    """Return what tells this program's copies from those of another version of it.

    It is a digest of the sources of whatever makes values of objects.
    """
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_SHARED / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
