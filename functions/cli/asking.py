"""Shared parts of the commands that query AWS and clusters with their user's permissions."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from shared.runtime.doctor import DoctorRuntime

BAD_INPUT: Final = 2
R = TypeVar("R")


def refuse(command: str, error: object) -> int:
    """Write in one line why a command cannot be carried out; return its exit code."""
    sys.stderr.write(f"dovetail {command}: {' '.join(str(error).split())}\n")
    return BAD_INPUT


def ask(command: str, runtime: Callable[[], R], use: Callable[[R], int]) -> int:
    """Return the exit code of what a command does with ledger, clusters and AWS.

    Args:
        runtime: Makes what it works with.
    """
    # Imported when it runs: `dovetail --help` needs none of it.
    from shared.model.errors import AutoscalerError  # noqa: PLC0415
    from shared.runtime.observability import logged_to_stderr  # noqa: PLC0415
    from shared.settings import SettingsError  # noqa: PLC0415

    try:
        with logged_to_stderr():
            return use(runtime())
    except (AutoscalerError, SettingsError) as error:
        return refuse(command, error)


def described_by_the_environment() -> "DoctorRuntime":
    """Return what doctor and why work with, as the environment describes it."""
    from shared.runtime.doctor import doctor_runtime  # noqa: PLC0415 -- as above

    return doctor_runtime()
