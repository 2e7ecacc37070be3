"""Files and folders that commands are given."""

import functools
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from functions.cli.input_error import InputError
from functions.cli.plan.reading.documents import Document, stream_documents
from shared.instance_types.catalog import Catalog, embedded_text, load_catalog
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.overhead import VM_MEMORY_OVERHEAD_PERCENT
from shared.model.errors import InvalidManifestError

if TYPE_CHECKING:
    from functions.cli.plan.reading.kept_fields import KeptFields

STDIN: Final = "-"
_MEASURED: Final = InstanceSetup(memory_percent=VM_MEMORY_OVERHEAD_PERCENT)
_MAX_BYTES: Final = 512 * 2**20  # of a catalogue or a decision
_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})


def read_all(names: Iterable[str], notes: list[str]) -> list[Document]:
    """Return the documents of files, folders and standard input, in this order.

    In a folder, the YAML and JSON files are read in order of name, without subfolders. Files there
    without a Kubernetes object are left out with a note; a file given by name must contain one.

    Raises:
        InputError: If something cannot be read.
        InvalidManifestError: If a document is malformed; says where.
    """
    from functions.cli.plan.reading.kept_fields import KeptFields  # noqa: PLC0415 -- not for --help

    kept = KeptFields()
    found: list[Document] = []
    for name in dict.fromkeys(names):
        path = Path(name)
        if name not in (STDIN, "") and path.is_dir():
            found.extend(_of_folder(path, notes, kept))
            continue
        before = len(found)
        source = "stdin" if name == STDIN else name
        with open_input(name) as file:
            found.extend(map(kept.kept_document, stream_documents(source, file)))
        if len(found) == before:
            raise InputError(f"{source}: is empty; expected Kubernetes manifests")
    return found


def read_bytes(name: str) -> bytes:
    """Return a file's content; `-` is standard input.

    Raises:
        InputError: If it cannot be read.
    """
    with open_input(name) as file:
        return file.read(_MAX_BYTES + 1)


@contextmanager
def open_input(name: str) -> Iterator[BinaryIO]:
    """Yield a file; `-` is standard input.

    Raises:
        InputError: If it cannot be opened, or read while it is open; says which it is.
    """
    try:
        if name == STDIN:
            if sys.stdin is None:
                raise InputError("-: the standard input is closed; expected a file")
            yield sys.stdin.buffer
            return
        if not name:
            # `Path` would take it for the current folder.
            raise InputError("'': is no file name; is a variable of the shell unset?")
        with Path(name).open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}; expected a readable file") from error
    except ValueError as error:
        raise InputError(f"{name!r}: {error}; expected a file name") from error


def write_bytes(name: str, content: bytes) -> None:
    """Write a file.

    Raises:
        InputError: If it cannot be written.
    """
    try:
        Path(name).write_bytes(content)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}; expected a file to write to") from error


def read_catalog(name: str | None, setup: InstanceSetup | None = None) -> Catalog:
    """Return the catalogue in a file, or the one that ships with Dovetail.

    Args:
        setup: How instances are set up; None for what the file says. The catalogue that ships with
            Dovetail then has the defaults, with the measured memory overhead.

    Raises:
        InputError: If it cannot be read or is not a catalogue.
    """
    if name is None:
        return _embedded(setup or _MEASURED)
    try:
        return load_catalog(read_bytes(name).decode(), setup)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 text; expected a catalogue as JSON") from error
    except InvalidManifestError as error:
        raise InputError(f"{name}: document 1: {error}") from error


@functools.cache
def _embedded(setup: InstanceSetup) -> Catalog:
    return load_catalog(embedded_text(), setup)


def _of_folder(folder: Path, notes: list[str], kept: "KeptFields") -> list[Document]:
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; expected a readable folder") from error
    if not files:
        raise InputError(f"{folder}: holds no .yaml, .yml or .json file")
    found: list[Document] = []
    for name in map(str, files):
        before = len(found)
        with open_input(name) as file:
            found.extend(
                kept.kept_document(document)
                for document in stream_documents(name, file)
                if "apiVersion" in document.raw or "kind" in document.raw
            )
        if len(found) == before:
            notes.append(f"{name}: holds no Kubernetes object, left out")
    return found
