"""`dovetail demo` and the other commands of the local world, which only a checkout has."""

import argparse
import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from functions.cli.parser import BAD_INPUT

# Looked up by name: installed or deployed code has no such package and imports none of it.
_PACKAGE: Final = "infra.local"
HELP: Final = {
    "demo": "run a scenario on this machine and show what happened",
    "up": "keep the same world running for kubectl and the aws CLI",
    "break": "break something in a running `up`, and see what it survives",
    "scenarios": "list the scenarios",
}


def mount_local_world(subparsers: Any) -> None:
    """Add the commands; without the local world, each says in one line what it needs."""
    if find_spec(_PACKAGE) is not None:
        import_module(f"{_PACKAGE}.commands").mount(subparsers)
        return
    for name, summary in HELP.items():
        # The answer is the same for all arguments: none of them begins with NUL.
        command = subparsers.add_parser(name, help=summary, add_help=False, prefix_chars="\0")
        command.add_argument("arguments", nargs="*")
        command.set_defaults(run=partial(_refuse, name))


def _refuse(name: str, _: argparse.Namespace) -> int:
    sys.stderr.write(
        f"dovetail {name}: needs a checkout of Dovetail and the extras infra and local: "
        f"in the checkout, make setup && .venv/bin/dovetail {name}\n"
    )
    return BAD_INPUT
