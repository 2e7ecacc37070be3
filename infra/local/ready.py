"""How a process of the local world says that it serves: a file with one JSON line."""

import json
from collections.abc import Mapping
from pathlib import Path


def announce(ready_file: Path, ready: Mapping[str, object]) -> None:
    """Write the file in one step, so that who waits for it reads all of it or nothing.

    It may hold a token: only its owner can read it.
    """
    partial = ready_file.with_name(f"{ready_file.name}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(ready) + "\n", encoding="utf-8")
    partial.replace(ready_file)
