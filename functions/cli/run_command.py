"""Shared parts of the commands that query AWS and clusters with their user's permissions."""

import sys
from collections.abc import Callable
from typing import Final, TypeVar

BAD_INPUT: Final = 2
R = TypeVar("R")


def refuse(command: str, error: object) -> int:
    """Write in one line why a command cannot be carried out; return its exit code."""
    sys.stderr.write(f"dovetail {command}: {' '.join(str(error).split())}\n")
    return BAD_INPUT


def run_command(
    command: str, make_runtime: Callable[[], R], command_body: Callable[[R], int]
) -> int:
    """Run a command that uses ledger, clusters and AWS; return its exit code.

    Args:
        make_runtime: Creates the runtime that is passed to `command_body`.
    """
    # Imported when it runs: `dovetail --help` needs none of it.
    from shared.model.errors import AutoscalerError  # noqa: PLC0415
    from shared.runtime.logs_and_metrics import logged_to_stderr  # noqa: PLC0415
    from shared.settings import SettingsError  # noqa: PLC0415

    try:
        with logged_to_stderr():
            return command_body(make_runtime())
    except (AutoscalerError, SettingsError) as error:
        return refuse(command, error)
