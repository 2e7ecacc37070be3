"""Recorded decisions in files, each beside the base that it is a change of."""

from pathlib import Path

from functions.cli.inputs import STDIN, read_bytes
from shared.decisions.replay import Decision, load_decision
from shared.model.errors import NotFoundError


def recorded_decision(name: str) -> Decision:
    """Return the decision in a file; `-` is standard input.

    A base is looked for by its key, in the folder of the file and in those above it.

    Raises:
        InputError: If a file cannot be read.
        InvalidManifestError: If it is no decision, or its base is not there.
    """
    return load_decision(read_bytes(name), lambda key: _base(name, key))


def _base(name: str, key: str) -> bytes:
    file = Path() if name == STDIN else Path(name).absolute().parent
    for folder in (file, *file.absolute().parents):
        if (folder / key).is_file():
            return read_bytes(str(folder / key))
    raise NotFoundError(f"no {key} in its folder, nor in one above")
