"""The `dovetail` command."""

import argparse
import io
import os
import signal
import sys
from pathlib import Path
from typing import Final

from functions.cli import local_world
from functions.cli.commands import mount
from functions.cli.parser import Parser

_EXIT_CODES: Final = """exit codes:
  0  everything that was expected held
  1  an expectation did not hold
  2  bad input: one line says what and how to mend it
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command of `dovetail`; return its exit code."""
    _open_outputs()
    try:
        try:
            return _run(argv)
        finally:
            # What does not reach a file or pipe by now is told here, and not at exit.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does.
        _let_output_go()
        return 0
    except OSError as error:
        if _takes_output():
            raise
        _let_output_go()
        sys.stderr.write(
            f"dovetail: standard output: {error.strerror}: name another file or make room\n"
        )
        return 2


def _run(argv: list[str] | None) -> int:
    arguments = make_parser().parse_args(argv)
    # On each signal that asks to exit, stop what was started first.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; what it parses has a `run` that returns the exit code."""
    parser = Parser(
        prog="dovetail",
        description="An event-driven, serverless node autoscaler for Kubernetes on AWS.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    mount(commands)
    local_world.mount(commands)
    return parser


def _open_outputs() -> None:
    """Let everything be printed: a closed output takes it all, a letter it lacks is a `?`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 -- as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _takes_output() -> bool:
    """Say whether an error is another file's. What failed may be forgotten: a byte is tried."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _let_output_go() -> None:
    """Let the standard output lead nowhere: flushing it at exit must not fail either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
