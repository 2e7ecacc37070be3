"""`dovetail doctor`: what is wrong with the clusters, and what to run about it."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from functions.cli.asking import ask, described_by_the_environment
from functions.cli.prerequisites import run as look_around

if TYPE_CHECKING:
    from shared.doctor.findings import Finding
    from shared.runtime.doctor import DoctorRuntime

HEALTHY: Final = 0
FINDINGS: Final = 1
_TEXT: Final = """\
Compares the ledger, the machines and the nodes of each attached cluster and prints what is not as
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


def mount(subparsers: Any, runtime: "Callable[[], DoctorRuntime] | None" = None) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code."""
    parser = subparsers.add_parser(
        "doctor",
        help="compare ledger, machines and nodes; --repair writes a lost ledger anew",
        description=_TEXT,
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--cluster", action="append", default=[], metavar="NAME", help="only this one; repeatable"
    )
    parser.add_argument("--repair", action="store_true", help="set right what can be")
    parser.add_argument(
        "--prerequisites",
        action="store_true",
        help="look only at what nodes need to join; before anything is deployed, too",
    )
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=lambda arguments: _chosen(arguments, runtime))


def _chosen(arguments: argparse.Namespace, runtime: "Callable[[], DoctorRuntime] | None") -> int:
    return look_around(arguments) if arguments.prerequisites else _run(arguments, runtime)


def _run(arguments: argparse.Namespace, runtime: "Callable[[], DoctorRuntime] | None") -> int:
    return ask(
        "doctor", runtime or described_by_the_environment, lambda doctor: _look(doctor, arguments)
    )


def _look(doctor: "DoctorRuntime", arguments: argparse.Namespace) -> int:
    found = [
        (cluster, *_of_cluster(doctor, cluster, repair=arguments.repair))
        for cluster in arguments.cluster or doctor.clusters()
    ]
    sys.stdout.write(_as_json(found) if arguments.output == "json" else _as_text(found))
    wrong = [finding for _, left, _ in found for finding in left if not finding.advice]
    return FINDINGS if wrong else HEALTHY


def _of_cluster(
    doctor: "DoctorRuntime", cluster: str, *, repair: bool
) -> "tuple[Sequence[Finding], Sequence[Finding]]":
    """Return what is left to do and what was repaired."""
    service = doctor.service(cluster)
    repaired = service.repair("doctor") if repair else ()
    return service.look(), repaired


def _as_text(found: "Sequence[tuple[str, Sequence[Finding], Sequence[Finding]]]") -> str:
    lines = []
    for cluster, left, repaired in found:
        wrong = sum(not finding.advice for finding in left)
        findings = "1 finding" if wrong == 1 else f"{wrong} findings"
        lines.append(f"{cluster}: {findings}, {len(repaired)} repaired")
        lines += [
            f"  repaired {finding.kind} {finding.subject}: {finding.text}" for finding in repaired
        ]
        for finding in left:
            lines.append(f"  {finding.kind} {finding.subject}: {finding.text}")
            command = "dovetail doctor --repair" if finding.repairable else finding.command
            if command:
                lines.append(f"    {'safer' if finding.advice else 'run'}: {command}")
    return "\n".join([*lines, ""])


def _as_json(found: "Sequence[tuple[str, Sequence[Finding], Sequence[Finding]]]") -> str:
    document = [
        {
            "cluster": cluster,
            "findings": [dataclasses.asdict(finding) for finding in left],
            "repaired": [dataclasses.asdict(finding) for finding in repaired],
        }
        for cluster, left, repaired in found
    ]
    return json.dumps(document, indent=2) + "\n"
