"""What is made once in a run of the tests, whichever of its processes asks for it first."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled; who asks meanwhile waits.

    Args:
        factory: Of this process.
        name: No other folder of the run has it.
        make: Fills the folder that it is given, which is moved afterwards.
    """
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / f"once-{name}"
    with (shared / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            filled = factory.mktemp(name)
            make(filled)
            filled.rename(folder)
    return folder
