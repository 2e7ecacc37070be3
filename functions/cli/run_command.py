"""Runs the body of a command; what it cannot do is told in one line."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from functions.cli.parser import BAD_INPUT
from functions.cli.printable_text import printable_text
from shared.model.errors import AutoscalerError, NotAttachedError

R = TypeVar("R")


def refuse(command: str, error: object) -> int:
    """Write in one line why a command cannot be carried out; return its exit code."""
    sys.stderr.write(printable_text([f"dovetail {command}: {' '.join(str(error).split())}"]))
    return BAD_INPUT


def run_or_refuse(command: str, command_body: Callable[[], int]) -> int:
    """Run a command; return its exit code."""
    try:
        return command_body()
    except AutoscalerError as error:
        return refuse(command, error)


def run_command(
    command: str, make_runtime: Callable[[], R], command_body: Callable[[R], int]
) -> int:
    """Run a command that uses ledger, clusters and AWS; return its exit code.

    Args:
        make_runtime: Creates the runtime that is passed to `command_body`.
    """
    # Imported when it runs: `dovetail --help` needs none of it.
    from shared.runtime.logs_and_metrics import logged_to_stderr  # noqa: PLC0415
    from shared.settings import SettingsError  # noqa: PLC0415

    try:
        with logged_to_stderr():
            return run_or_refuse(command, lambda: command_body(make_runtime()))
    except SettingsError as error:
        return refuse(command, error)


def one_cluster(named: str | None, attached: Callable[[], Sequence[str]]) -> str:
    """Return the cluster that is named, or the only one that is attached.

    Raises:
        NotAttachedError: If none is named, and not exactly one is attached.
    """
    clusters = (named,) if named else attached()
    if len(clusters) != 1:
        listed = ", ".join(clusters) or "none"
        raise NotAttachedError(f"attached clusters: {listed}; name one with --cluster")
    return clusters[0]
