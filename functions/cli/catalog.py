"""`dovetail catalog`: types and prices of a Region, for `dovetail plan --catalog`."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from functions.cli.parser import Subparsers, add_command, unwritable
from functions.cli.run_command import refuse, run_command

if TYPE_CHECKING:
    from functions.cli.catalog_runtime import MadeCatalog

WRITTEN: Final = 0
_TEXT: Final = """\
Reads instance types, zones and today's prices of a Region and writes them as a catalogue, which
`dovetail plan --catalog FILE` plans with. Acts with your own rights: ec2:DescribeInstanceTypes,
ec2:DescribeInstanceTypeOfferings, ec2:DescribeSpotPriceHistory and pricing:GetProducts. Takes some
hundred calls that cost nothing, and changes nothing in AWS. Where Dovetail is deployed in the
Region and lambda:GetFunctionConfiguration is allowed, its settings of instances are taken
(prefix_delegation and others).

  dovetail catalog --region eu-west-1 --output eu-west-1.json
  dovetail plan --catalog eu-west-1.json -f pods.yaml -f provisioner.yaml
"""
_CODES: Final = """exit codes:
  0  the catalogue is written
  2  AWS cannot be asked, has no prices, or the file cannot be written: one line says what
"""


_DEPLOYED: Final = "pods and memory of nodes: as the settings of Dovetail in {region} say"
_BY_DEFAULT: Final = (
    "pods and memory of nodes: as by default; no settings of Dovetail in {region} can be read "
    "(give them to dovetail plan with --set, such as prefix_delegation=true)"
)


def mount_catalog(
    subparsers: Subparsers, make: "Callable[[str], MadeCatalog] | None" = None
) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code."""
    summary = "write the instance types of a Region, with today's prices, for plan --catalog"
    parser = add_command(subparsers, "catalog", summary, _TEXT, _CODES)
    parser.add_argument("--region", metavar="NAME", help="such as eu-west-1 (that of your profile)")
    parser.add_argument("--output", metavar="FILE", help="where to write it (standard output)")
    parser.set_defaults(run=lambda arguments: _run(arguments, make))


def _run(arguments: argparse.Namespace, make: "Callable[[str], MadeCatalog] | None") -> int:
    # Imported when it runs: `dovetail --help` needs none of it.
    from functions.cli.catalog_runtime import make_catalog  # noqa: PLC0415

    if why := unwritable("--output", arguments.output):
        return refuse("catalog", why)
    return run_command(
        "catalog",
        lambda: (make or make_catalog)(arguments.region or ""),
        lambda made: _write(made, arguments.output),
    )


def _write(made: "MadeCatalog", name: str | None) -> int:
    from functions.cli.plan.inputs import write_bytes  # noqa: PLC0415 -- not for --help
    from shared.instance_types.catalog import load_catalog  # noqa: PLC0415
    from shared.instance_types.summary import summarize  # noqa: PLC0415

    if name is None:
        sys.stdout.write(made.text)
    else:
        write_bytes(name, made.text.encode())
    source = _DEPLOYED if made.deployed else _BY_DEFAULT
    sys.stderr.write(f"{summarize(load_catalog(made.text))}\n{source.format(region=made.region)}\n")
    return WRITTEN
