"""How a command refuses what it is given."""

from pathlib import Path
from typing import Final

_LONGEST: Final = 1000


def one_line(command: str, file: Path, said: str) -> None:
    """Assert that a refusal is one line of text that names the file."""
    assert said.startswith(f"dovetail {command}: {file}: ")
    assert said.endswith("\n")
    assert said[:-1].isprintable()
    assert len(said) < _LONGEST
