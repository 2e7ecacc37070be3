"""Which prices a command takes for a running cluster."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from decimal import Decimal

    from functions.cli.catalog_runtime import MadeCatalog
    from shared.instance_types.catalog import Catalog

EMBEDDED_NOTE: Final = (
    "The prices are those that ship with Dovetail, and the spot prices among them are made up: "
    "--live-prices asks AWS for today's"
)


def add_prices(parser: argparse.ArgumentParser) -> None:
    """Add `--catalog`, `--live-prices` and `--discount`, for `chosen_catalog`."""
    prices = parser.add_mutually_exclusive_group()
    prices.add_argument(
        "--catalog",
        metavar="FILE",
        help="prices, as `dovetail catalog` writes them (the embedded ones, of us-east-1)",
    )
    prices.add_argument(
        "--live-prices", action="store_true", help="ask AWS for the prices, with your credentials"
    )
    parser.add_argument(
        "--discount",
        type=_paid,
        metavar="PAID",
        help="what is paid of on-demand list prices, such as 0.72 with Savings Plans",
    )


def _paid(text: str) -> "Decimal":
    from functions.cli.discount import read_discount  # noqa: PLC0415 -- not for --help

    return read_discount(text)


def price_notes(arguments: argparse.Namespace) -> list[str]:
    """Return what to know of the prices that were chosen; usually nothing."""
    notes = [EMBEDDED_NOTE] if are_embedded(arguments) else []
    if arguments.discount is not None:
        notes.append(
            f"On-demand prices are {arguments.discount} of the list prices, as --discount says; "
            "spot prices are whole"
        )
    return notes


def are_embedded(arguments: argparse.Namespace) -> bool:
    """Return whether the prices that ship with Dovetail were chosen."""
    return arguments.catalog is None and not arguments.live_prices


def chosen_catalog(
    arguments: argparse.Namespace,
    region: str,
    make: "Callable[[str], MadeCatalog] | None" = None,
) -> "Catalog":
    """Return the catalogue that the options choose.

    Args:
        region: Of the cluster.
        make: Returns the catalogue of a Region; None for AWS's.

    Raises:
        AutoscalerError: If it cannot be read or made.
    """
    # Imported when it runs: `dovetail --help` needs none of it, and a file nothing of AWS.
    from functions.cli.discount import with_discount  # noqa: PLC0415
    from functions.cli.plan.inputs import read_catalog  # noqa: PLC0415

    if arguments.live_prices:
        from functions.cli.catalog_runtime import make_catalog  # noqa: PLC0415
        from shared.instance_types.catalog import load_catalog  # noqa: PLC0415

        catalog = load_catalog((make or make_catalog)(region).text)
    else:
        catalog = read_catalog(arguments.catalog)
    return catalog if arguments.discount is None else with_discount(catalog, arguments.discount)
