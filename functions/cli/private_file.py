"""Files that only their owner can read, wherever they are."""

import os
import tempfile
from pathlib import Path


def write_private_file(path: Path, text: str) -> None:
    """Write a file atomically; an existing file or link is replaced, and no link is followed.

    Others may be able to write to its folder: the content is first written under a new name that
    cannot be guessed (`mkstemp`: O_EXCL, O_NOFOLLOW, mode 0600).

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
