"""A command-line parser that reports mistakes in one line, like any other bad input."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

BAD_INPUT = 2


class Parser(argparse.ArgumentParser):
    """An argument parser, also for commands added to it, that prints no usage on mistakes."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where help is, in one line; exit with 2."""
        text = " ".join(message.split())
        sys.stderr.write(f"{self.prog}: {text}; {self.prog} --help lists what there is\n")
        sys.exit(BAD_INPUT)


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
