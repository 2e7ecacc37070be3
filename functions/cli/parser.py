"""A command line whose mistakes are told in one line, like any other bad input."""

import argparse
import sys
from typing import NoReturn

BAD_INPUT = 2


class Parser(argparse.ArgumentParser):
    """An argument parser, also of the commands added to it, without a page of usage on mistakes."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, in one line; exits with 2."""
        told = " ".join(message.split())
        sys.stderr.write(f"{self.prog}: {told}; {self.prog} --help lists what there is\n")
        sys.exit(BAD_INPUT)
