"""`dovetail doctor --prerequisites`: what must exist before nodes can launch and join."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from functions.cli.doctor.findings import finding_lines
from functions.cli.run_command import refuse
from shared.model.codec import to_plain
from shared.model.errors import AutoscalerError

if TYPE_CHECKING:
    from functions.cli.doctor.findings import Finding
    from functions.cli.doctor.prerequisites_runtime import PrerequisitesRuntime

ALL_WELL: Final = 0
FINDINGS: Final = 1
_PARAMETERS: Final = "/dovetail/clusters"


def check_prerequisites(
    arguments: argparse.Namespace, runtime: "Callable[[str], PrerequisitesRuntime] | None" = None
) -> int:
    """Print the findings of each cluster; return the exit code."""
    # Imported when it runs: `dovetail --help` needs none of it.
    from functions.cli.doctor.prerequisites_runtime import PrerequisitesRuntime  # noqa: PLC0415

    try:
        made = (runtime or PrerequisitesRuntime)(_PARAMETERS)
        made.require_caller()
        clusters = tuple(arguments.cluster) or made.clusters()
    except AutoscalerError as error:
        return refuse("doctor", error)
    if not clusters:
        return refuse("doctor", "no cluster is attached: name one with --cluster")
    found = [(cluster, made.service(cluster).findings()) for cluster in clusters]
    sys.stdout.write(_as_json(found) if arguments.output == "json" else _as_text(found))
    wrong = [finding for _, findings in found for finding in findings if not finding.advice]
    return FINDINGS if wrong else ALL_WELL


def _as_text(found: "Sequence[tuple[str, Sequence[Finding]]]") -> str:
    lines = []
    for cluster, findings in found:
        wrong = sum(not finding.advice for finding in findings)
        summary = f"{wrong} to see to" if wrong else "all that is needed is there"
        lines += [f"{cluster}: {summary}", *finding_lines(findings)]
    return "\n".join([*lines, ""])


def _as_json(found: "Sequence[tuple[str, Sequence[Finding]]]") -> str:
    document = [
        {"cluster": cluster, "findings": [to_plain(finding) for finding in findings]}
        for cluster, findings in found
    ]
    return json.dumps(document, indent=2) + "\n"
