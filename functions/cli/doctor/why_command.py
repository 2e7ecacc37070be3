"""`dovetail why`: what happened to a pod or a node, what it waits for and what would help."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from functions.cli.parser import Subparsers, add_cluster, add_command
from functions.cli.run_command import one_cluster, refuse, run_command
from shared.model.codec import to_plain

if TYPE_CHECKING:
    from functions.cli.doctor.runtime import DoctorRuntime
    from functions.cli.doctor.why import Answer, Why

ANSWERED: Final = 0
_TEXT: Final = """\
Says of one pod or node what Dovetail did and decided, what it waits for and what would help. Reads
the cluster, the ledger and the recorded decisions, and changes nothing. Acts with your own rights,
as `dovetail doctor` does, and finds ledger and archive in the same way.

  dovetail why pod/default/web-0
  dovetail why pod/web-0                 in namespace default
  dovetail why node/ip-10-0-0-7.ec2.internal --cluster prod
"""
_CODES: Final = """exit codes:
  0  answered
  2  bad input, no such pod or node, or AWS or the cluster cannot be reached: one line says what
"""
_EXPECTED: Final = "expected pod/NAMESPACE/NAME, pod/NAME or node/NAME"


def mount_why(subparsers: Subparsers, runtime: "Callable[[], DoctorRuntime] | None" = None) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code."""
    summary = "say what a pod or node waits for, and why"
    parser = add_command(subparsers, "why", summary, _TEXT, _CODES)
    parser.add_argument("subject", metavar="SUBJECT", help=_EXPECTED.removeprefix("expected "))
    add_cluster(parser)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=lambda arguments: _run(arguments, runtime))


def _run(arguments: argparse.Namespace, runtime: "Callable[[], DoctorRuntime] | None") -> int:
    kind, _, name = arguments.subject.partition("/")
    if kind not in ("pod", "node") or not name or name.count("/") > (kind == "pod"):
        return refuse("why", f"{arguments.subject}: {_EXPECTED}")
    from functions.cli.doctor.runtime import DoctorRuntime  # noqa: PLC0415 -- not for --help

    return run_command(
        "why",
        runtime or DoctorRuntime,
        lambda known: _answer(known, arguments, kind, name),
    )


def _answer(runtime: "DoctorRuntime", arguments: argparse.Namespace, kind: str, name: str) -> int:
    why = runtime.why(one_cluster(arguments.cluster, runtime.clusters))
    answer = _answer_about(why, kind, name)
    sys.stdout.write(_as_json(answer) if arguments.output == "json" else _as_text(answer))
    return ANSWERED


def _answer_about(why: "Why", kind: str, name: str) -> "Answer":
    if kind == "node":
        return why.node(name)
    namespace, _, short = name.rpartition("/")
    return why.pod(namespace or "default", short)


def _as_text(answer: "Answer") -> str:
    lines = [f"{answer.subject} {answer.state}"]
    parts = (
        ("what happened", answer.history),
        ("waits for", answer.waits_for),
        ("what would help", answer.helps),
    )
    for title, part_lines in parts:
        if part_lines:
            lines += [f"{title}:", *(f"  {line}" for line in part_lines)]
    if answer.events:
        lines.append("events (UTC):")
    for event in answer.events:
        at = f"{event.at:%H:%M:%S}" if event.at is not None else "--:--:--"
        times = f" (x{event.count})" if event.count > 1 else ""
        message = " ".join(event.message.split())
        lines.append(f"  {at}  {event.source}  {event.reason}{times}  {message}")
    return "\n".join([*lines, ""])


def _as_json(answer: "Answer") -> str:
    return json.dumps(to_plain(answer), indent=2) + "\n"
