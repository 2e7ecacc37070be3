"""Reads files of manifests into single documents.

A file holds JSON or YAML, one document or many, objects or `kubectl get` Lists. Files are not
trusted: a file that would take unbounded time or memory to read is refused with a reason. Of a
large file, only one item of its List or one of its YAML documents is in memory at a time.
"""

import codecs
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

from msgspec import Struct

from shared.manifests.problems import FieldProblem
from shared.manifests.raw_json import Raw, mapping, text
from shared.model.errors import InvalidManifestError
from shared.model.surrogates import SURROGATE_REMEDY, escapes_surrogate, first_surrogate

# A file of up to so many bytes is read at once; this is also the bound of a YAML document.
AT_ONCE_BYTES: Final = 16 * 2**20
# Reading JSON takes a few hundredths of a second per MiB, YAML a quarter of a second.
MAX_JSON_BYTES: Final = 4 * 2**30
MAX_YAML_BYTES: Final = 512 * 2**20
_PIECE_BYTES: Final = 2**20
_MAX_NODES: Final = 5_000_000
_MAX_DEPTH: Final = 200
# The most commas, colons and line ends, which bound the number of values. A million take half a
# minute and a GiB; the largest file that people write has less than half of that.
_MAX_YAML_MARKS: Final = 1_500_000
# The parser's own stack has about 10,000 levels; a text with fewer brackets cannot overflow it.
_SAFE_BRACKETS: Final = 4_000
_DEEP_LINE: Final = re.compile(r"^[ \-?]{4000}", re.MULTILINE)
_BORDER: Final = re.compile(r"^---", re.MULTILINE)
# Such a line, after its directives, begins a document even in the middle of a text:
# https://yaml.org/spec/1.2.2/#rule-c-forbidden.
_NEW_DOCUMENT: Final = re.compile(r"^(?:%[^\n]*\n)*---(?=[ \t\r\n])", re.MULTILINE)
_ESCAPE_LENGTH: Final = 12  # of a surrogate, at most
_YAML: Final = "write Kubernetes manifests as YAML or JSON"


class InvalidDocumentError(InvalidManifestError):
    """A file or a document in it that cannot be used; `str()` is one line with the place.

    Args:
        where: File, and number of the document in it.
    """

    def __init__(self, where: str, problem: FieldProblem) -> None:
        value = _short(problem.value)
        super().__init__(field=problem.field, value=value, remedy=problem.remedy)
        self.where = where
        self._shown = "" if problem.value is None else f"{_one_line(value)}: "

    def __str__(self) -> str:
        path = f"{_one_line(self.field)}: " if self.field else ""
        return f"{self.where}: {path}{self._shown}{_one_line(self.remedy)}"


class Document(Struct, frozen=True, kw_only=True):
    """One object of a file.

    Attributes:
        where: Its place, for people, such as `FILE: document 2, items[3]`.
    """

    where: str
    raw: Raw

    @property
    def kind(self) -> str:
        """Its kind, empty when it has none."""
        return text(self.raw.get("kind"))

    @property
    def api_version(self) -> str:
        """Its apiVersion, empty when it has none."""
        return text(self.raw.get("apiVersion"))

    @property
    def namespace(self) -> str:
        """Its namespace; `default` where none is given, as with kubectl."""
        return text(mapping(self.raw.get("metadata")).get("namespace")) or "default"

    @property
    def name(self) -> str:
        """Its name, empty when it has none."""
        return text(mapping(self.raw.get("metadata")).get("name"))

    @property
    def with_namespace(self) -> Raw:
        """The object with an explicit namespace, as the API server would return it."""
        metadata = {**mapping(self.raw.get("metadata")), "namespace": self.namespace}
        return {**self.raw, "metadata": metadata}

    def invalid(self, field: str, value: object, remedy: str) -> InvalidDocumentError:
        """Return the error that says what is wrong with a field of this document."""
        return InvalidDocumentError(
            self.where, FieldProblem(field=field, value=value, remedy=remedy)
        )


def read_documents(source: str, content: bytes) -> tuple[Document, ...]:
    """Return the objects of a file in order, Lists as their items, without empty documents.

    Args:
        source: Name of the file, for messages.

    Raises:
        InvalidDocumentError: If it is not text, not YAML or JSON, or beyond the bounds.
    """
    return tuple(stream_documents(source, io.BytesIO(content)))


def stream_documents(source: str, stream: BinaryIO) -> Iterator[Document]:
    """Yield the objects of a file one by one, as the stream is read.

    Raises:
        InvalidDocumentError: As `read_documents`, once the place of the fault is read.
        OSError: If the stream cannot be read.
    """
    head = stream.read(AT_ONCE_BYTES + 1)
    if len(head) <= AT_ONCE_BYTES:
        content = "".join(_decoded(source, head, stream, AT_ONCE_BYTES))
        parsed: Iterable[tuple[int, Any]] = _json(source, content) or _yaml(source, content)
    elif head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{":
        yield from _large_list(source, _decoded(source, head, stream, MAX_JSON_BYTES))
        return
    else:
        parsed = _large_yaml(source, _decoded(source, head, stream, MAX_YAML_BYTES))
    for number, value in parsed:
        where = f"{source}: document {number}"
        if value is not None:
            if not isinstance(value, dict):
                raise _refused(where, "", value, "must be an object with apiVersion and kind")
            yield from _items(where, value)


def _decoded(source: str, head: bytes, stream: BinaryIO, max_bytes: int) -> Iterator[str]:
    """Yield the text of a file, piece by piece.

    Args:
        head: The bytes that have been read of the stream.

    Raises:
        InvalidDocumentError: If it is not UTF-8, or has more bytes than the limit.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    starts = range(0, len(head), _PIECE_BYTES)
    cut = (head[start : start + _PIECE_BYTES] for start in starts)
    size = 0
    for piece in itertools.chain(cut, iter(lambda: stream.read(_PIECE_BYTES), b""), [b""]):
        size += len(piece)
        if size > max_bytes:
            remedy = f"has more than {max_bytes >> 20} MiB; split the file, or write it as JSON"
            raise _refused(source, "", None, remedy)
        try:
            yield decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            raise _refused(source, "", None, f"is not UTF-8 text; {_YAML}") from error


def _json(source: str, content: str) -> list[tuple[int, Any]] | None:
    """Return the document of a JSON file, None for anything else: YAML reads that, too."""
    if content.lstrip()[:1] != "{":
        return None
    try:
        value = json.loads(content, object_pairs_hook=_without_duplicate_keys)
    except _DuplicateKeyError as error:
        where = f"{source}: document 1"
        raise _refused(where, error.key, None, "is said twice; keep one of them") from error
    except (ValueError, RecursionError):
        return None
    _refuse_unencodable(source, content, [(1, value)])
    return [(1, value)]


def _refuse_unencodable(source: str, decoded: str, documents: list[tuple[int, Any]]) -> None:
    if not escapes_surrogate(decoded):
        return
    for number, value in documents:
        found = first_surrogate(value)
        if found is not None:
            raise _refused(f"{source}: document {number}", *found, SURROGATE_REMEDY)


def _large_list(source: str, pieces: Iterable[str]) -> Iterator[Document]:
    """Yield the items of one List in JSON, each when it is read."""
    # Imported only here: small files do not need it.
    from functions.cli.plan.reading import json_pieces  # noqa: PLC0415 -- see above

    where = at = f"{source}: document 1"
    escapes = _Escapes(pieces)
    reader = json_pieces.JsonPieces(iter(escapes), _without_duplicate_keys)
    fields: dict[str, Any] = {}
    held: list[tuple[str, Raw]] = []  # items of a List that has its kind only after them
    try:
        for key in reader.members():
            if key != "items" or reader.next() != "[":
                fields[key] = reader.value()
                continue
            fields[key] = None
            for number, item in enumerate(reader.items()):
                at = f"{where}, items[{number}]"
                escapes.check(at, item)
                if "kind" in fields or not isinstance(item, dict) or item.get("kind"):
                    yield _item(at, fields, item)
                else:
                    held.append((at, item))
    except _DuplicateKeyError as error:
        raise _refused(at, error.key, None, "is said twice; keep one of them") from error
    except json_pieces.JsonProblemError as error:
        raise _refused(at, error.place, None, f"is not JSON: {error}; {_YAML}") from error
    escapes.check(where, fields)
    listed = text(fields.get("kind")).endswith("List") and fields.get("items", "") is None
    if reader.next() or not listed:
        more = f"is larger than {AT_ONCE_BYTES >> 20} MiB and not one List of JSON; split the file"
        raise _refused(where, "kind", fields.get("kind"), more)
    yield from (_item(place, fields, item) for place, item in held)


class _Escapes:
    """Iterates over pieces of a text and records whether any of them escapes a surrogate."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = pieces
        self._found = False

    def __iter__(self) -> Iterator[str]:
        before = ""
        for piece in self._pieces:
            self._found = self._found or escapes_surrogate(before + piece)
            before = piece[-_ESCAPE_LENGTH:]
            yield piece

    def check(self, where: str, value: object) -> None:
        """Refuse a value of the text that UTF-8 cannot encode."""
        found = first_surrogate(value) if self._found else None
        if found is not None:
            raise _refused(where, *found, SURROGATE_REMEDY)


def _large_yaml(source: str, pieces: Iterable[str]) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each document, some documents at a time."""
    number = line = 0
    for documents in _whole_documents(source, pieces):
        found = _yaml(source, documents, number, line)
        yield from found
        number += len(found)
        line += documents.count("\n")


def _whole_documents(source: str, pieces: Iterable[str]) -> Iterator[str]:
    """Yield the text in pieces that end where a document begins."""
    waiting = ""
    for piece in pieces:
        waiting += piece
        cut = max((found.start() for found in _NEW_DOCUMENT.finditer(waiting)), default=0)
        if len(waiting) - cut > AT_ONCE_BYTES:
            size = f"a document has more than {AT_ONCE_BYTES >> 20} MiB"
            remedy = f"{size}; split it, or write it as JSON (kubectl get -o json)"
            raise _refused(source, "", None, remedy)
        if cut:
            yield waiting[:cut]
            waiting = waiting[cut:]
    yield waiting


class _DuplicateKeyError(Exception):
    """An object has a duplicate key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _without_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object; refuse duplicate keys, since parsers disagree on which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _DuplicateKeyError(next(key for key, count in counts.items() if count > 1))
    return found


def _yaml(source: str, content: str, number: int = 0, line: int = 0) -> list[tuple[int, Any]]:
    """Return number and value of each document, None for an empty one.

    Args:
        number: Number of the document before the text.
        line: Number of lines of the file before the text.
    """
    if sum(content.count(mark) for mark in ",:\n") > _MAX_YAML_MARKS:
        remedy = "holds too many values for YAML; split the file, or write it as JSON"
        raise _refused(source, "", None, remedy)
    # Imported only here: reading JSON does not need it.
    from functions.cli.plan.reading import yaml_text  # noqa: PLC0415 -- see above

    try:
        if _may_be_deep(content):
            yaml_text.check_depth(content, _MAX_DEPTH)
        values = yaml_text.load_all(content, _MAX_NODES)
        found = list(enumerate(values, number + 1))
    except yaml_text.YamlProblemError as error:
        where = f"{source}: document {number + error.number}" if error.number else source
        raise _refused(where, error.place(line), None, f"{error.reason}; {_YAML}") from error
    _refuse_unencodable(source, content, found)
    return found


def _may_be_deep(decoded: str) -> bool:
    """Return whether a document of the text could be nested too deeply for the parser."""
    if _DEEP_LINE.search(decoded):
        return True
    if decoded.count("[") + decoded.count("{") < _SAFE_BRACKETS:
        return False
    return any(
        part.count("[") + part.count("{") >= _SAFE_BRACKETS for part in _BORDER.split(decoded)
    )


def _items(where: str, value: Raw) -> Iterator[Document]:
    if not (text(value.get("kind")).endswith("List") and "items" in value):
        yield Document(where=where, raw=value)
        return
    items = value["items"]
    if items is not None and not isinstance(items, list):
        raise _refused(where, "items", items, "must be a list of objects")
    for number, item in enumerate(items or ()):
        yield _item(f"{where}, items[{number}]", value, item)


def _item(where: str, of_list: Raw, item: object) -> Document:
    if not isinstance(item, dict):
        raise _refused(where, "", item, "must be an object with apiVersion and kind")
    # Items of a typed list (PodList) have neither kind nor apiVersion.
    kind = text(of_list.get("kind")).removesuffix("List")
    implied = {"apiVersion": of_list.get("apiVersion"), "kind": kind} if kind else {}
    return Document(where=where, raw={**implied, **item})


def _refused(where: str, field: str, value: object, remedy: str) -> InvalidDocumentError:
    return InvalidDocumentError(where, FieldProblem(field=field, value=value, remedy=remedy))


def _short(value: object) -> object:
    """Return the value, shortened when it is long."""
    if isinstance(value, (dict, list, tuple, set)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return f"{value[:57]}..." if isinstance(value, str) and len(value) > 60 else value


def _one_line(value: object) -> str:
    shown = value if isinstance(value, str) and value.isprintable() else repr(value)
    return shown if len(shown) <= 300 else f"{shown[:297]}..."
