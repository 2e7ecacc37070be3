"""`dovetail catalog`: what can be bought in a Region, for `dovetail plan --catalog`."""

import argparse
import sys
from collections.abc import Callable
from typing import Any, Final

from functions.cli.asking import refuse
from functions.cli.parser import unwritable

WRITTEN: Final = 0
_TEXT: Final = """\
Reads instance types, zones and today's prices of a Region and writes them as a catalogue, which
`dovetail plan --catalog FILE` plans with. Acts with your own rights: ec2:DescribeInstanceTypes,
ec2:DescribeInstanceTypeOfferings, ec2:DescribeSpotPriceHistory and pricing:GetProducts. Takes some
hundred calls that cost nothing, and changes nothing in AWS.

  dovetail catalog --region eu-west-1 --output eu-west-1.json
  dovetail plan --catalog eu-west-1.json -f pods.yaml -f provisioner.yaml
"""
_CODES: Final = """exit codes:
  0  the catalogue is written
  2  AWS cannot be asked, has no prices, or the file cannot be written: one line says what
"""


def mount(subparsers: Any, make: Callable[[str], str] | None = None) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code."""
    parser = subparsers.add_parser(
        "catalog",
        help="write what can be bought in a Region, with today's prices, for plan --catalog",
        description=_TEXT,
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--region", metavar="NAME", help="such as eu-west-1 (that of your profile)")
    parser.add_argument("--output", metavar="FILE", help="where to write it (standard output)")
    parser.set_defaults(run=lambda arguments: _run(arguments, make))


def _run(arguments: argparse.Namespace, make: Callable[[str], str] | None) -> int:
    # Imported when it runs: `dovetail --help` needs none of it.
    from functions.cli.inputs import InputError, write_bytes  # noqa: PLC0415
    from shared.catalog.reading import load_catalog  # noqa: PLC0415
    from shared.catalog.summary import summarize  # noqa: PLC0415
    from shared.model.errors import AutoscalerError  # noqa: PLC0415
    from shared.runtime.catalog import make_catalog  # noqa: PLC0415

    if why := unwritable("--output", arguments.output):
        return refuse("catalog", why)
    try:
        text = (make or make_catalog)(arguments.region or "")
    except AutoscalerError as error:
        return refuse("catalog", error)
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        try:
            write_bytes(arguments.output, text.encode())
        except InputError as error:
            return refuse("catalog", error)
    sys.stderr.write(f"{summarize(load_catalog(text))}\n")
    return WRITTEN
