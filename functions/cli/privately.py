"""Files that their owner alone reads, wherever they are."""

import os
import tempfile
from pathlib import Path


def write_privately(path: Path, text: str) -> None:
    """Write a file in one step; whatever is there is replaced, and no link is followed.

    It may be in a folder that others write to: its content is written under a name that is new
    and cannot be guessed (`mkstemp`: O_EXCL, O_NOFOLLOW, mode 0600).

    Raises:
        OSError: If it cannot be written.
    """
    handle, partial = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
