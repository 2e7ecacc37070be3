"""What is made or read once in a run of the tests, whatever asks for it first."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
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


@contextmanager
def shared_service_models() -> Iterator[None]:
    """Let all sessions of botocore in this process share the models of services that they read."""
    from botocore.loaders import create_loader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", cache(create_loader))
        yield
