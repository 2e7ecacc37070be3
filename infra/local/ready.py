"""How a process of the local world says that it serves: a file with one JSON line."""

import json
from collections.abc import Mapping
from pathlib import Path

from functions.cli.private_file import write_private_file


def announce(ready_file: Path, ready: Mapping[str, object]) -> None:
    """Write the file in one step, so that who waits for it reads all of it or nothing.

    It may hold a token: only its owner can read it.
    """
    write_private_file(ready_file, json.dumps(ready) + "\n")
