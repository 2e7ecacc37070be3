"""What is told to the person at the terminal, in one line, with what to do."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


class Problem(Exception):  # noqa: N818 - it is not the program's error but the person's news
    """Something the person must know: a missing tool, a busy port, an unreadable file."""


def guarded(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Return a command that tells a problem in one line, and returns 2."""

    def run(arguments: argparse.Namespace) -> int:
        try:
            return command(arguments)
        except Problem as problem:
            sys.stderr.write(f"{arguments.parser.prog}: {problem}\n")
            return 2

    return run


def last_words(log: Path) -> str:
    """Return the last line of a log, for the folder it is in goes with the world."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:300] if said else "it said nothing"
