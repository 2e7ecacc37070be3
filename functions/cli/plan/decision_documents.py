"""Reads documents of decisions within size limits, and joins each with its base."""

import json
import re
import zlib
from collections.abc import Callable
from typing import Any, Final

from shared.model.codec import CodecError
from shared.model.errors import InvalidManifestError, NotFoundError
from shared.model.surrogates import SURROGATE_REMEDY as ENCODABLE
from shared.model.surrogates import escapes_surrogate, first_surrogate
from shared.provisioning.decisions.bases import COLLECTIONS, without_version
from shared.provisioning.decisions.changes import applied
from shared.provisioning.decisions.record import SINCE_BASE, WHOLE, compressed

# A snapshot of 100,000 pods is about 150 MiB of text.
MAX_BYTES: Final = 256 * 2**20
MOST_VALUES: Final = (
    20_000_000  # a value takes some 60 bytes; 100,000 pods have half as many values
)
REMEDY: Final = "must be a decision that Dovetail recorded (plan --save, or decisions/ in S3)"
_PIECE: Final = 2**20
_GZIP: Final = b"\x1f\x8b"
_OPENING: Final = b"{"
# bases/CLUSTER/DAY/PLAN.json.gz, without path traversal.
_KEY: Final = re.compile(r"bases/[\w-][\w.-]*/\d{4}-\d\d-\d\d/[\w-][\w.-]*\.json\.gz", re.ASCII)

# Returns a base by its key; raises NotFoundError if there is none.
Bases = Callable[[str], bytes]


class MissingBaseError(InvalidManifestError):
    """The base of a decision does not exist."""

    def __init__(self, key: str, problem: object) -> None:
        remedy = (
            f"the base that this decision is a change of is not there ({problem}); it is kept "
            f"longer than the decision, in the same bucket: aws s3 cp s3://BUCKET/{key} {key}"
        )
        super().__init__(field="base", value=key, remedy=remedy)


def no_bases(key: str) -> bytes:
    """Raise: bases are not available.

    Raises:
        NotFoundError: Always.
    """
    raise NotFoundError(f"{key}: bases are not looked for")


def base_of(content: bytes) -> str:
    """Return the key of a decision's base, empty if it has none.

    Raises:
        InvalidManifestError: If it is not a decision.
    """
    return _base_of(_parsed(content))


def whole_document(content: bytes, bases: Bases) -> bytes:
    """Return a decision that needs no base: unchanged, or joined with its base.

    Raises:
        InvalidManifestError: If it is none, or its base is not there.
    """
    if not base_of(content):
        return content
    document = read_document(content, bases)
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    return compressed(text)


def read_document(content: bytes, bases: Bases) -> dict[str, Any]:
    """Return the document of a decision, joined with its base if it has one.

    Raises:
        InvalidManifestError: If it is none, or its base is not there.
    """
    document = _parsed(content)
    key = _base_of(document)
    if not key:
        return document
    try:
        base = _parsed(bases(key))
    except NotFoundError as error:
        raise MissingBaseError(key, error) from error
    except InvalidManifestError as error:
        raise InvalidManifestError(
            field="base", value=key, remedy=f"{error.field}: {error.remedy}"
        ) from error
    snapshot = document.get("snapshot")
    if not isinstance(snapshot, dict):
        raise InvalidManifestError(field="snapshot", value=None, remedy=f"is missing; {REMEDY}")
    joined = {name: _joined(name, base, snapshot.get(name)) for name in COLLECTIONS}
    del document["base"]
    return {**document, "version": WHOLE, "snapshot": {**snapshot, **joined}}


def _joined(name: str, base: dict[str, Any], changes: Any) -> list[Any]:
    members = base.get(name)
    if not isinstance(members, list):
        raise InvalidManifestError(field=f"base.{name}", value=None, remedy="must be a list")
    plain = [without_version(value) if isinstance(value, dict) else value for value in members]
    try:
        return applied(plain, changes)
    except CodecError as error:
        path = ".".join(("snapshot", name, *error.path))
        remedy = f"{error.problem}; {REMEDY}"
        raise InvalidManifestError(field=path, value=None, remedy=remedy) from error


def _base_of(document: dict[str, Any]) -> str:
    if document["version"] == WHOLE:
        return ""
    key = document.get("base")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidManifestError(
            field="base", value=key, remedy=f"must be the key of a base; {REMEDY}"
        )
    return key


def _parsed(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a document, compressed or not."""
    if content.startswith(_GZIP):
        content = _decompressed(content)
    elif len(content) > MAX_BYTES:
        raise _unreadable(f"is larger than {MAX_BYTES >> 20} MiB")
    if sum(map(content.count, (b"[", b"{", b","))) > MOST_VALUES:
        raise _unreadable(f"holds more than {MOST_VALUES} values")
    try:
        text = content.decode()
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(REMEDY) from error
    half = first_surrogate(document) if escapes_surrogate(text) else None
    if half is not None:
        raise InvalidManifestError(field=half[0], value=half[1], remedy=ENCODABLE)
    if not isinstance(document, dict) or document.get("version") not in (WHOLE, SINCE_BASE):
        remedy = f"must be {WHOLE} or {SINCE_BASE}; {REMEDY}"
        raise InvalidManifestError(field="version", value=None, remedy=remedy)
    return document


def _decompressed(content: bytes) -> bytes:
    """Return the decompressed text, read in pieces: reading stops if it is too large."""
    reader = zlib.decompressobj(wbits=31)
    pieces: list[bytes] = []
    size = 0
    try:
        while not reader.eof:
            piece = reader.decompress(content, _PIECE)
            content = reader.unconsumed_tail
            size += len(piece)
            pieces.append(piece)
            if not (piece or content or reader.eof):
                raise _unreadable("is cut short")
            if size > MAX_BYTES:
                raise _unreadable(f"is larger than {MAX_BYTES >> 20} MiB")
            if not pieces[0].startswith(_OPENING):
                raise _unreadable(REMEDY)
    except zlib.error as error:
        raise _unreadable(REMEDY) from error
    return b"".join(pieces)


def _unreadable(remedy: str) -> InvalidManifestError:
    return InvalidManifestError(field="document", value=None, remedy=remedy)
