"""Copies of collections that outlive a process: written by sweep, read by functions that start.

A copy is used only if it is of this cluster's API server, of the same program version, and
complete; otherwise the collection is listed, as without a copy. Nothing checks who wrote it.
"""

import hashlib
import logging
import zlib
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

# A copy is listed again after this time, so that a missed event has no longer effect.
MOST_AGE: Final = timedelta(hours=1)
# Level 6 saves 10 % in three times the time. Raw deflate, as the checksum covers the document.
_LEVEL: Final = 1
_RAW: Final = -15
# The most bytes of a copy: a text that unpacks to more was not written by Dovetail.
_MOST_BYTES: Final = 2**28
_SHARED: Final = Path(__file__).parents[2]
# The sources that decode objects of an API server: if any of them changes, the values may change.
_SOURCES: Final = ("kube/kept", "manifests", "model")
_LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")


class StoredCopy(Struct, Generic[T], frozen=True, kw_only=True):
    """A collection as it was at a version.

    Attributes:
        values: Sorted.
        listed_at: When it was last listed; since then it was updated by watches.
    """

    values: tuple[T, ...]
    version: int
    listed_at: datetime


class CopyStoreFactory(Protocol):
    """Returns the stores of a cluster's copies."""

    def __call__(self, collection: str, kind: type[T], /) -> "CopyStore[T] | None":
        """Return the store of a collection's copy; None where none is kept."""
        ...


def no_copy_store(_: str, kind: type[T]) -> "CopyStore[T] | None":
    """Return None: no copies are kept."""
    del kind
    return None


def copy_stores(copies: Copies, *, cluster: str, server: str) -> CopyStoreFactory:
    """Return the factory of the copy stores of one cluster.

    Args:
        copies: Copies of all clusters.
        server: Identifies its API server, also against a former server of the same name.
    """

    def copy_store_of(collection: str, kind: type[T]) -> CopyStore[T]:
        source = f"{collection} of {cluster} at {server}"
        return CopyStore(copies, f"{cluster}/{program_digest()}/{collection}", source, kind)

    return copy_store_of


class UnusableError(ValueError):
    """A copy that must not be used; the message says why."""


class CopyStore(Generic[T]):
    """The store of the copy of one collection of one cluster.

    Args:
        copies: Copies of all clusters.
        source: Cluster, API server and collection.
        kind: Class of its values.
    """

    def __init__(self, copies: Copies, key: str, source: str, kind: type[T]) -> None:
        self._copies = copies
        self._key = key
        self._source = source
        self._kind = kind

    def load(self, now: datetime) -> StoredCopy[T] | None:
        """Return the copy, None if there is none; log an unusable copy and return None."""
        try:
            return read_copy(self._source, self._kind, self._copies.get(self._key), now)
        except NotFoundError:
            return None
        except (UnusableError, AutoscalerError) as error:
            _LOG.warning("the copy of %s is not used: %s", self._source, error)
            return None

    def save(self, stored: StoredCopy[T]) -> bool:
        """Replace the copy and return True; on failure log it, keep the last copy, return False."""
        try:
            self._copies.put(self._key, encode_copy(self._source, self._kind, stored))
        except (ColumnsError, AutoscalerError) as error:
            _LOG.warning("the copy of %s is not written: %s", self._source, error)
            return False
        return True


class _Head(Struct, frozen=True, kw_only=True):
    """The header before the values; it says whether they may be used.

    Attributes:
        form: Digest of the program that wrote it.
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


def encode_copy(source: str, kind: type[T], stored: StoredCopy[T]) -> bytes:
    """Encode a copy as a document.

    Args:
        source: Cluster, API server and collection.
        kind: Class of the values.

    Raises:
        ColumnsError: If a value cannot be written.
    """
    packer = zlib.compressobj(_LEVEL, wbits=_RAW)
    body = packer.compress(encode(kind, stored.values)) + packer.flush()
    head = _Head(
        form=program_digest(), source=source, version=stored.version, listed_at=stored.listed_at
    )
    return _ENCODER.encode(_Document(_with_digest(head, body), body))


def read_copy(source: str, kind: type[T], document: bytes, now: datetime) -> StoredCopy[T]:
    """Decode a copy.

    Args:
        source: Cluster, API server and collection that it must be of.

    Raises:
        UnusableError: If it is damaged, of another program, of another source, or too old.
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
    return StoredCopy(values=values, version=head.version, listed_at=head.listed_at)


def _is_of_form(head: _Head) -> bool:
    return head.form == program_digest()


def _is_of_source(head: _Head, source: str) -> bool:
    return head.source == source


def _is_whole(head: _Head, body: bytes) -> bool:
    return head == _with_digest(head, body)


def _with_digest(head: _Head, body: bytes) -> _Head:
    bare = replace(head, digest=b"")
    return replace(head, digest=hashlib.sha256(_ENCODER.encode(bare) + body).digest())


@cache
def program_digest() -> str:
    """Return a digest of the sources that decode objects.

    It distinguishes this program's copies from those of another version.
    """
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_SHARED / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
