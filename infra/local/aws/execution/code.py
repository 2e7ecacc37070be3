"""The deployed code of a function, unpacked once per content."""

import hashlib
import io
import shutil
import threading
import zipfile
from pathlib import Path


class CodeStore:
    """Unpacks deployment packages into `root`, one folder per content hash."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()

    def folder_of(self, package: bytes) -> Path:
        """Return the folder that holds the unpacked zip; it may be shared by functions."""
        digest = hashlib.sha256(package).hexdigest()[:24]
        folder = self._root / digest
        with self._lock:
            if not folder.exists():
                partial = self._root / f"{digest}.partial"
                shutil.rmtree(partial, ignore_errors=True)
                with zipfile.ZipFile(io.BytesIO(package)) as archive:
                    archive.extractall(partial)
                partial.rename(folder)
        return folder
