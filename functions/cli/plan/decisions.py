"""Recorded decisions in files, with the base that each is a change of."""

from pathlib import Path

from functions.cli.plan.inputs import STDIN, read_bytes
from functions.cli.plan.recorded_decision import RecordedDecision, load_decision
from shared.model.errors import NotFoundError


def recorded_decision(name: str) -> RecordedDecision:
    """Return the decision in a file; `-` is standard input.

    A base is searched for by its key, in the folder of the file and in those above it.

    Raises:
        InputError: If a file cannot be read.
        InvalidManifestError: If it is not a decision, or its base is missing.
    """
    return load_decision(read_bytes(name), lambda key: _base(name, key))


def _base(name: str, key: str) -> bytes:
    start = Path() if name == STDIN else Path(name).absolute().parent
    for folder in (start, *start.absolute().parents):
        if (folder / key).is_file():
            return read_bytes(str(folder / key))
    raise NotFoundError(f"no {key} in its folder, nor in one above")
