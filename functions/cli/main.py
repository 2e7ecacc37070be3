"""The `dovetail` command."""

import argparse
import io
import os
import signal
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

from functions.cli import local_world
from functions.cli.commands import mount_commands
from functions.cli.parser import EXIT_CODES, Parser, add_command

_COMPLETION: Final = """\
Prints a script that completes the commands and options of dovetail.

  dovetail completion bash   to be sourced: source <(dovetail completion bash) in ~/.bashrc
  dovetail completion zsh    to be written to a file _dovetail in a folder of fpath
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command of `dovetail`; return its exit code."""
    _open_outputs()
    try:
        try:
            return _run(argv)
        finally:
            # An error in writing to a file or pipe is reported here, and not at exit.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does.
        _discard_output()
        return 0
    except OSError as error:
        if _output_works():
            raise
        _discard_output()
        sys.stderr.write(
            f"dovetail: standard output: {error.strerror}: name another file or make room\n"
        )
        return 2


def _run(argv: list[str] | None) -> int:
    parser = make_parser()
    arguments = parser.parse_command(argv)
    if arguments.version:
        sys.stdout.write(f"dovetail {version('dovetail-autoscaler')}\n")
        return 0
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 0
    # On each signal that asks to exit, first stop what was started.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130


def make_parser() -> Parser:
    """Return the parser of all commands; what it parses has a `run` that returns the exit code."""
    parser = Parser(
        prog="dovetail",
        description="An event-driven, serverless node autoscaler for Kubernetes on AWS.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND")
    mount_commands(commands)
    local_world.mount_local_world(commands)
    completion = add_command(
        commands, "completion", "print what makes a shell complete commands", _COMPLETION
    )
    completion.add_argument("shell", choices=("bash", "zsh"), help="the shell")
    completion.set_defaults(run=_complete)
    return parser


def _complete(arguments: argparse.Namespace) -> int:
    import shtab  # noqa: PLC0415 -- other commands need none of it

    sys.stdout.write(f"{shtab.complete(make_parser(), arguments.shell)}\n")
    return 0


def _open_outputs() -> None:
    """Make printing safe.

    A closed stream goes to /dev/null, and characters that the encoding lacks become `?`.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 -- as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _output_works() -> bool:
    """Return whether standard output still works, by writing one newline.

    If it does, the error came from another file.
    """
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _discard_output() -> None:
    """Redirect standard output to /dev/null: flushing it at exit must not fail either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
