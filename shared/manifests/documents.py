"""Files of manifests, as people keep them, turned into single documents.

A file holds JSON or YAML, one document or many, objects or `kubectl get` Lists. Files come from
anywhere: one that would take unbounded time or memory to read is refused with a reason.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from shared.manifests.fields import Raw, mapping, text
from shared.manifests.problems import FieldProblem
from shared.model.encodable import REMEDY, escapes_surrogate, unencodable
from shared.model.errors import InvalidManifestError

# Reading YAML takes about a second per MiB, JSON a hundredth of that.
MAX_YAML_BYTES: Final = 16 * 2**20
MAX_JSON_BYTES: Final = 512 * 2**20
_MAX_NODES: Final = 5_000_000
_MAX_DEPTH: Final = 200
# Commas, colons and line ends: no text has more values than these. A million take half a minute
# and a GiB; manifests as people write them have less than half of that in the largest file.
_MAX_YAML_MARKS: Final = 1_500_000
# The parser's own stack bears about 10,000 levels; below this many brackets there is no danger.
_SAFE_BRACKETS: Final = 4_000
_DEEP_LINE: Final = re.compile(r"^[ \-?]{4000}", re.MULTILINE)
_BORDER: Final = re.compile(r"^---", re.MULTILINE)
_YAML: Final = "write Kubernetes manifests as YAML or JSON"


class InvalidDocumentError(InvalidManifestError):
    """A file or a document in it that cannot be used; `str()` is one line that says where.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a file.

    Attributes:
        where: `FILE: document 2, items[3]`: where it stands, for people.
    """

    where: str
    raw: Raw = field(hash=False)

    @property
    def kind(self) -> str:
        """Its kind, empty when it says none."""
        return text(self.raw.get("kind"))

    @property
    def api_version(self) -> str:
        """Its apiVersion, empty when it says none."""
        return text(self.raw.get("apiVersion"))

    @property
    def namespace(self) -> str:
        """Its namespace; where none is given, the one kubectl would use."""
        return text(mapping(self.raw.get("metadata")).get("namespace")) or "default"

    @property
    def name(self) -> str:
        """Its name, empty when it has none."""
        return text(mapping(self.raw.get("metadata")).get("name"))

    @property
    def named(self) -> Raw:
        """The object with its namespace written out, as the API server would answer it."""
        metadata = {**mapping(self.raw.get("metadata")), "namespace": self.namespace}
        return {**self.raw, "metadata": metadata}

    def refused(self, field: str, value: object, remedy: str) -> InvalidDocumentError:
        """Return the error that says what is wrong with a field of this document."""
        return InvalidDocumentError(
            self.where, FieldProblem(field=field, value=value, remedy=remedy)
        )


def read_documents(source: str, content: bytes) -> tuple[Document, ...]:
    """Return the objects of a file in order, Lists taken apart, empty documents left out.

    Args:
        source: Name of the file, for messages.

    Raises:
        InvalidDocumentError: If it is not text, not YAML or JSON, or beyond the bounds.
    """
    parsed = _json(source, content)
    if parsed is None:
        parsed = _yaml(source, content)
    found: list[Document] = []
    for number, value in parsed:
        where = f"{source}: document {number}"
        if not isinstance(value, dict):
            raise _refused(where, "", value, "must be an object with apiVersion and kind")
        found.extend(_apart(where, value))
    return tuple(found)


def _json(source: str, content: bytes) -> list[tuple[int, Any]] | None:
    """Return the one document of a JSON file, None for anything else: YAML takes that too."""
    if content.lstrip()[:1] != b"{":
        return None
    if len(content) > MAX_JSON_BYTES:
        raise _too_large(source, content, MAX_JSON_BYTES, "split the file")
    try:
        decoded = content.decode("utf-8-sig")
        value = json.loads(decoded, object_pairs_hook=_said_once)
    except _SaidTwiceError as error:
        where = f"{source}: document 1"
        raise _refused(where, error.key, None, "is said twice; keep one of them") from error
    except (ValueError, RecursionError):
        return None
    _refuse_unencodable(source, decoded, [(1, value)])
    return [(1, value)]


def _refuse_unencodable(source: str, decoded: str, documents: list[tuple[int, Any]]) -> None:
    if not escapes_surrogate(decoded):
        return
    for number, value in documents:
        found = unencodable(value)
        if found is not None:
            raise _refused(f"{source}: document {number}", *found, REMEDY)


class _SaidTwiceError(Exception):
    """An object says a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object; readers disagree on which one counts when a key stands there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _SaidTwiceError(next(key for key, count in counts.items() if count > 1))
    return found


def _yaml(source: str, content: bytes) -> list[tuple[int, Any]]:
    if len(content) > MAX_YAML_BYTES:
        remedy = "split the file, or write it as JSON (kubectl get -o json)"
        raise _too_large(source, content, MAX_YAML_BYTES, remedy)
    try:
        decoded = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(source, "", None, f"is not UTF-8 text; {_YAML}") from error
    if sum(decoded.count(mark) for mark in ",:\n") > _MAX_YAML_MARKS:
        remedy = "holds too many values for YAML; split the file, or write it as JSON"
        raise _refused(source, "", None, remedy)
    # Only here: reading JSON alone does not pay for it.
    from shared.manifests import yaml_text  # noqa: PLC0415 -- see above

    try:
        if _may_be_deep(decoded):
            yaml_text.check_depth(decoded, _MAX_DEPTH)
        found = [
            (number, value)
            for number, value in enumerate(yaml_text.load_all(decoded, _MAX_NODES), 1)
            if value is not None
        ]
    except yaml_text.YamlProblemError as error:
        where = f"{source}: document {error.number}" if error.number else source
        raise _refused(where, error.place, None, f"{error.reason}; {_YAML}") from error
    _refuse_unencodable(source, decoded, found)
    return found


def _may_be_deep(decoded: str) -> bool:
    """Return whether a document of the text could be nested deeper than the parser bears."""
    if _DEEP_LINE.search(decoded):
        return True
    if decoded.count("[") + decoded.count("{") < _SAFE_BRACKETS:
        return False
    return any(
        part.count("[") + part.count("{") >= _SAFE_BRACKETS for part in _BORDER.split(decoded)
    )


def _apart(where: str, value: Raw) -> Iterator[Document]:
    kind = text(value.get("kind"))
    if not (kind.endswith("List") and "items" in value):
        yield Document(where=where, raw=value)
        return
    items = value["items"]
    if items is not None and not isinstance(items, list):
        raise _refused(where, "items", items, "must be a list of objects")
    # Items of a typed list (PodList) say neither kind nor version.
    implied = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    for number, item in enumerate(items or ()):
        at = f"{where}, items[{number}]"
        if not isinstance(item, dict):
            raise _refused(at, "", item, "must be an object with apiVersion and kind")
        if implied["kind"]:
            item = {**implied, **item}  # noqa: PLW2901 - the same item, made whole
        yield Document(where=at, raw=item)


def _too_large(source: str, content: bytes, limit: int, remedy: str) -> InvalidDocumentError:
    size = f"is {len(content) / 2**20:.1f} MiB, at most {limit >> 20} MiB are read"
    return _refused(source, "", None, f"{size}; {remedy}")


def _refused(where: str, field: str, value: object, remedy: str) -> InvalidDocumentError:
    return InvalidDocumentError(where, FieldProblem(field=field, value=value, remedy=remedy))


def _short(value: object) -> object:
    """Return the value, or the beginning of how it is written when that is long."""
    if isinstance(value, (dict, list, tuple, set)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{value[:57]}..." if isinstance(value, str) and len(value) > 60 else value


def _one_line(value: object) -> str:
    shown = value if isinstance(value, str) and value.isprintable() else repr(value)
    return shown if len(shown) <= 300 else f"{shown[:297]}..."
