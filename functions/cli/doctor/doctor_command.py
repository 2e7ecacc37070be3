"""`dovetail doctor`: what is wrong with the clusters, and what to run to fix it."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from functions.cli.doctor.findings import finding_lines
from functions.cli.doctor.prerequisites_command import check_prerequisites
from functions.cli.parser import Subparsers, add_command, add_list
from functions.cli.run_command import refuse, run_command
from shared.model.codec import to_plain
from shared.model.dollars_and_counts import counted
from shared.model.errors import AutoscalerError

if TYPE_CHECKING:
    from functions.cli.doctor.findings import Finding
    from functions.cli.doctor.runtime import DoctorRuntime

HEALTHY: Final = 0
FINDINGS: Final = 1
_TEXT: Final = """\
Compares the ledger, the instances and the nodes of each attached cluster and prints what is not as
it should be, with the command to run about it. Acts with your own rights: in AWS those of your
credentials, in each cluster those of their access entry. Finds ledger and queues by the function
dovetail-sweep, unless they are set (DOVETAIL_TABLE, DOVETAIL_BUCKET, DOVETAIL_QUEUE_URL,
DOVETAIL_DEAD_LETTER_URL).

  dovetail doctor --prerequisites        before anything is deployed
  dovetail doctor --cluster prod
  dovetail doctor --cluster prod --repair
"""
_CODES: Final = """exit codes:
  0  nothing is wrong, or all of it was repaired; advice does not count
  1  something is left to do
  2  bad input, or AWS or a cluster cannot be reached: one line says what
"""


def mount_doctor(
    subparsers: Subparsers, runtime: "Callable[[], DoctorRuntime] | None" = None
) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code."""
    summary = "compare ledger, instances and nodes; --repair writes a lost ledger again"
    parser = add_command(subparsers, "doctor", summary, _TEXT, _CODES)
    add_list(parser, "--cluster", metavar="NAME", help="only this one; repeatable")
    parser.add_argument("--repair", action="store_true", help="set right what can be")
    parser.add_argument(
        "--prerequisites",
        action="store_true",
        help="look only at what nodes need to join; before anything is deployed, too",
    )
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=lambda arguments: _run(arguments, runtime))


def _run(arguments: argparse.Namespace, runtime: "Callable[[], DoctorRuntime] | None") -> int:
    if arguments.prerequisites:
        return check_prerequisites(arguments)
    from functions.cli.doctor.runtime import DoctorRuntime  # noqa: PLC0415 -- not for --help

    return run_command(
        "doctor", runtime or DoctorRuntime, lambda doctor: _examine(doctor, arguments)
    )


def _examine(doctor: "DoctorRuntime", arguments: argparse.Namespace) -> int:
    found = []
    for cluster in arguments.cluster or doctor.clusters():
        found.append(_examine_cluster(doctor, cluster, repair=arguments.repair))
        if arguments.output == "table":
            # Printed at once: repairs are reported whatever happens to the other clusters.
            sys.stdout.write(_as_text(found[-1]))
            sys.stdout.flush()
    if arguments.output == "json":
        sys.stdout.write(_as_json(found))
    errors = [f"{examined.cluster}: {examined.error}" for examined in found if examined.error]
    codes = [refuse("doctor", error) for error in errors]
    wrong = [finding for examined in found for finding in examined.left if not finding.advice]
    return max([*codes, FINDINGS if wrong else HEALTHY])


class _Examined(Struct, kw_only=True):
    """The result for one cluster.

    Attributes:
        left: Findings that are left to fix.
        error: Why it could not be checked, in one line; empty if it was.
    """

    cluster: str
    left: "Sequence[Finding]" = ()
    repaired: "Sequence[Finding]" = ()
    error: str = ""


def _examine_cluster(doctor: "DoctorRuntime", cluster: str, *, repair: bool) -> _Examined:
    examined = _Examined(cluster=cluster)
    try:
        service = doctor.service(cluster)
        if repair:
            examined.repaired = service.repair("doctor")
        examined.left = service.findings()
    except AutoscalerError as error:
        examined.error = " ".join(str(error).split())
    return examined


def _as_text(examined: _Examined) -> str:
    if examined.error and not examined.repaired:
        return ""
    wrong = sum(not finding.advice for finding in examined.left)
    summary = "not looked over" if examined.error else counted(wrong, "finding")
    lines = [f"{examined.cluster}: {summary}, {len(examined.repaired)} repaired"]
    lines += [
        f"  repaired {finding.kind} {finding.subject}: {finding.text}"
        for finding in examined.repaired
    ]
    return "\n".join([*lines, *finding_lines(examined.left), ""])


def _as_json(found: Sequence[_Examined]) -> str:
    document = [
        {
            "cluster": examined.cluster,
            "findings": [to_plain(finding) for finding in examined.left],
            "repaired": [to_plain(finding) for finding in examined.repaired],
            "error": examined.error,
        }
        for examined in found
    ]
    return json.dumps(document, indent=2) + "\n"
