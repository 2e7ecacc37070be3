"""`dovetail report`: what a running cluster costs and could cost, as one file."""

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from functions.cli.input_error import InputError
from functions.cli.kubeconfig import add_kubeconfig
from functions.cli.parser import Subparsers, add_command, add_list, add_settings, unwritable
from functions.cli.prices import add_prices, are_embedded, chosen_catalog, price_notes
from functions.cli.run_command import run_or_refuse
from shared.runtime.python_gc import without_python_gc

if TYPE_CHECKING:
    from functions.cli.catalog_runtime import MadeCatalog
    from functions.cli.plan.reading.documents import Document
    from functions.cli.report.cost_report import CostReport
    from functions.cli.report.page import Subject
    from shared.manifests.raw_json import Raw

WRITTEN: Final = 0
_BUDGET: Final = "PodDisruptionBudget"
_FORMATS: Final = (".html", ".json", ".csv")
_WRITE_TO: Final = "dovetail-report.html"
_TEXT: Final = """\
Reads a running cluster, or a dump of it, and writes what it costs and what the same pods could cost
as one HTML file: consolidated, repacked, on other types, on spot, by pool and by namespace, with
proved lower bounds. It ends with what to do: the edits of NodePools and workloads that save most,
as YAML. Works beside Karpenter, Cluster Autoscaler, managed node groups and EKS Auto
Mode; installs nothing and writes nothing in the cluster.

  dovetail report                                  the cluster of your kubeconfig
  dovetail report --live-prices                    with today's prices of its Region
  kubectl get nodes,pods,ds,pdb,pvc,pv,sc,csinodes,priorityclasses,nodepools,ec2nodeclasses \\
      --all-namespaces -o json > dump.json
  dovetail report -f dump.json                     a dump, without a cluster
  dovetail report --discount 0.72 --output report.json    after Savings Plans, for programs

Reads with your kubeconfig (get and list), and with --live-prices as `dovetail catalog` does.
"""
_CODES: Final = """exit codes:
  0  the report is written
  2  bad input, or the cluster or AWS cannot be read: one line says what
"""


def mount_report(
    subparsers: Subparsers,
    read: "Callable[[str | None, dict[str, str]], Iterable[Raw]] | None" = None,
    make: "Callable[[str], MadeCatalog] | None" = None,
) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code.

    Args:
        read: Returns the objects of the cluster that a kubeconfig names, and adds the kinds that
            may not be read; None for the real one.
        make: Returns the catalogue of a Region; None for AWS's.
    """
    summary = "write what a running cluster costs and could cost, as one HTML file"
    parser = add_command(subparsers, "report", summary, _TEXT, _CODES)
    dump = "a dump instead of the cluster: file, folder, or - for standard input"
    add_list(parser, "-f", "--filename", metavar="FILE", help=dump)
    add_kubeconfig(parser)
    add_prices(parser)
    parser.add_argument("--name", metavar="CLUSTER", default="", help="what the report calls it")
    add_settings(parser, "compare this setting, too: see dovetail plan --help; may be repeated")
    parser.add_argument(
        "--output",
        metavar="FILE",
        default=_WRITE_TO,
        help=f"({_WRITE_TO}); .json and .csv are for programs",
    )
    parser.set_defaults(
        run=lambda arguments: run_or_refuse(
            "report", lambda: without_python_gc(lambda: _write(arguments, read, make))
        )
    )


def _write(
    arguments: argparse.Namespace,
    read: "Callable[[str | None, dict[str, str]], Iterable[Raw]] | None",
    make: "Callable[[str], MadeCatalog] | None",
) -> int:
    # Imported when it runs: `dovetail --help` needs none of it.
    from functions.cli.plan.inputs import write_bytes  # noqa: PLC0415
    from functions.cli.plan.packing_settings import overridden_policy_notes  # noqa: PLC0415
    from functions.cli.plan.reading.running_cluster import read_running_cluster, region_of  # noqa: PLC0415
    from functions.cli.report.cost_report import REPACK_SETTINGS, cost_report  # noqa: PLC0415
    from functions.cli.report.page import Subject  # noqa: PLC0415
    from functions.cli.report.summary import summary_lines  # noqa: PLC0415
    from functions.cli.report.variants import variants  # noqa: PLC0415
    from shared.instance_types.summary import summarize  # noqa: PLC0415
    from shared.runtime.system import SystemClock  # noqa: PLC0415

    if why := unwritable("--output", arguments.output):
        raise InputError(why)
    if (suffix := Path(arguments.output).suffix) not in ("", *_FORMATS):
        known = ", ".join(_FORMATS)
        raise InputError(
            f"--output {arguments.output}: {suffix} is not written: name one of {known}"
        )
    notes = price_notes(arguments)
    unread: dict[str, str] = {}
    documents, read_at = _documents(arguments, read, notes, unread)
    catalog = chosen_catalog(arguments, region_of(documents), make)
    running = read_running_cluster(documents, catalog)
    compared = variants(arguments.settings)
    for _, settings in compared:
        notes += overridden_policy_notes(settings, REPACK_SETTINGS, running.snapshot.provisioners)
    report = cost_report(
        running.snapshot,
        # A dump without any may be of a cluster that has some.
        running.budgets or (None if unread.get(_BUDGET) or arguments.filename else ()),
        compared,
        running.manifests,
        made_up_spot=are_embedded(arguments),
    )
    subject = Subject(
        cluster=arguments.name or running.name or _context(arguments),
        read_at=read_at,
        prices=summarize(catalog),
        today=SystemClock().now().date(),
        notes=(*notes, *running.notes),
    )
    first, *others = summary_lines(report, subject.notes)
    told = [subject.prices.line(subject.today)] if report.running.nodes else []
    sys.stdout.write("".join(f"{line}\n" for line in (first, *told, *others)))
    sys.stdout.flush()
    write_bytes(arguments.output, _text_of(arguments.output, report, subject).encode())
    sys.stdout.write(f"written to {arguments.output}\n")
    return WRITTEN


def _context(arguments: argparse.Namespace) -> str:
    """Return the name of the context that was read, empty for a dump."""
    if arguments.filename:
        return ""
    from functions.cli.kubeconfig import context_name  # noqa: PLC0415

    return context_name(arguments.kubeconfig, arguments.context)


def _text_of(output: str, report: "CostReport", subject: "Subject") -> str:
    """Return the report in the format that the name of its file asks for."""
    from functions.cli.report.page import page  # noqa: PLC0415
    from functions.cli.report.report_document import csv_report, json_report  # noqa: PLC0415

    match Path(output).suffix:
        case ".json":
            return json_report(report, subject)
        case ".csv":
            return csv_report(report)
        case _:
            return page(report, subject)


def _documents(
    arguments: argparse.Namespace,
    read: "Callable[[str | None, dict[str, str]], Iterable[Raw]] | None",
    notes: list[str],
    unread: dict[str, str],
) -> "tuple[list[Document], str]":
    """Return the documents, and when or from what they were read, in words."""
    from functions.cli.plan.inputs import read_all  # noqa: PLC0415
    from functions.cli.plan.reading.documents import Document  # noqa: PLC0415

    if arguments.filename:
        named = ", ".join(Path(name).name for name in arguments.filename)
        return read_all(arguments.filename, notes), f"Read from {named}"
    # A dump needs nothing of Kubernetes' client.
    from functions.cli.cluster_dump import dump_cluster, unread_notes  # noqa: PLC0415
    from shared.runtime.system import SystemClock  # noqa: PLC0415

    dump = partial(dump_cluster, context=arguments.context)
    found = [
        Document(where="cluster", raw=raw) for raw in (read or dump)(arguments.kubeconfig, unread)
    ]
    notes += unread_notes(unread)
    return found, f"Read at {SystemClock().now():%Y-%m-%d %H:%M} UTC"
