"""How a process of the local world says that it serves: a file with one JSON line."""

import json
from collections.abc import Mapping
from pathlib import Path

from functions.cli.privately import write_privately


def announce(ready_file: Path, ready: Mapping[str, object]) -> None:
    """Write the file in one step, so that who waits for it reads all of it or nothing.

    It may hold a token: only its owner can read it.
    """
    write_privately(ready_file, json.dumps(ready) + "\n")
