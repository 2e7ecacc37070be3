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
    there = path if path.exists() else path.parent
    if path.is_dir() or not os.access(there, os.W_OK) or (there != path and not there.is_dir()):
        return f"{option} {name}: cannot be written: name a file in a folder that exists"
    return ""
