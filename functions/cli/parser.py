"""A command line whose mistakes are told in one line, like any other bad input."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

BAD_INPUT = 2


class Parser(argparse.ArgumentParser):
    """An argument parser, also of the commands added to it, without a page of usage on mistakes."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, in one line; exits with 2."""
        told = " ".join(message.split())
        sys.stderr.write(f"{self.prog}: {told}; {self.prog} --help lists what there is\n")
        sys.exit(BAD_INPUT)


def unwritable(option: str, name: str | None) -> str:
    """Return in one line why a file that is to be written cannot be; empty where it can.

    For use before the work whose answer goes there; what becomes of the disk meanwhile is not
    known.

    Args:
        name: Of the file; None where none is asked for.
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
