"""A command-line parser that reports mistakes in one line, like any other bad input."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from typing_extensions import override

from shared.model.nearest import nearest, write_instead

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

BAD_INPUT: Final = 2
EXIT_CODES: Final = """exit codes:
  0  everything that was expected held
  1  an expectation did not hold
  2  bad input: one line says what and how to mend it
"""
# How argparse says that a word is none of the choices.
_CHOICE: Final = re.compile(
    r"argument \S+: invalid choice: '(?P<given>.*)' \(choose from (?P<known>.*)\)"
)
# Options that people try, and what there is instead.
_ELSEWHERE: Final = {
    "--region": "dovetail catalog writes the prices of a Region, --catalog reads them, and "
    "--other-catalog plans with them besides",
    "--context": "why, report, plan, watch and others read a cluster by it",
}
Subparsers = Any  # argparse has no public name for what add_subparsers returns


class Parser(argparse.ArgumentParser):
    """An argument parser, also for commands added to it, that prints no usage on mistakes."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where help is, in one line; exit with 2."""
        text = " ".join(message.split())
        if choice := _CHOICE.fullmatch(text):
            known = [name.strip("'") for name in choice["known"].split(", ")]
            text = f"{choice['given']}: unknown; {write_instead(choice['given'], known)}"
        sys.stderr.write(f"{self.prog}: {text}; {self.prog} --help lists what there is\n")
        sys.exit(BAD_INPUT)

    @override
    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Print the help; argparse itself does not tell that a disk is full."""
        (file or sys.stdout).write(self.format_help())

    def parse_command(self, words: Sequence[str] | None) -> argparse.Namespace:
        """Return the arguments; what no command knows is an error of the command it was given to.

        Without a command the result has no `run`.
        """
        arguments, unknown = self.parse_known_args(words)
        if unknown:
            parser = getattr(arguments, "parser", self)
            option = unknown[0].partition("=")[0]
            near = nearest(option, parser._option_string_actions)  # noqa: SLF001 -- has no public name
            advice = _ELSEWHERE.get(option) or (f"write {near}" if near else "")
            parser.error(f"{unknown[0]}: unknown{advice and f'; {advice}'}")
        return arguments


def add_command(
    subparsers: Subparsers, name: str, summary: str, text: str, codes: str | None = None
) -> argparse.ArgumentParser:
    """Add a command and return its parser; its help shows text and exit codes as written."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=text,
        epilog=codes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(parser=parser)
    return parser


def add_list(parser: argparse.ArgumentParser, *names: str, **more: Any) -> None:
    """Add an option that may be repeated; without it the list is empty."""
    parser.add_argument(*names, action="append", default=[], **more)


def add_settings(parser: argparse.ArgumentParser, summary: str) -> None:
    """Add `--set`, which may be repeated."""
    add_list(parser, "--set", dest="settings", metavar="KEY=VALUE", help=summary)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add `--cluster`, for `one_cluster`."""
    parser.add_argument("--cluster", metavar="NAME", help="needed where several are attached")


def number_up_to(most: float, noun: str = "a number") -> Callable[[str], float]:
    """Return a type of an option's value: a number above 0, at most `most`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if 0 < value <= most:
            return value
        raise argparse.ArgumentTypeError(f"{text}: give {noun} above 0, at most {most:g}")

    return read


def unwritable(option: str, name: str | None) -> str:
    """Return in one line why a file cannot be written, empty if it can.

    For use before the work whose result goes there; the disk may still change meanwhile.

    Args:
        name: Name of the file; None if no file is requested.
    """
    if name is None:
        return ""
    path = Path(name)
    why = "name a file in a folder that exists"
    try:
        there = path if path.exists() else path.parent
        writable = os.access(there, os.W_OK) and (there == path or there.is_dir())
        return (
            "" if writable and not path.is_dir() else f"{option} {name}: cannot be written: {why}"
        )
    except OSError as error:
        return f"{option} {name}: cannot be written: {error.strerror}: {why}"
