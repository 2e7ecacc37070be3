"""`dovetail why`: what happened to a pod or a node, what it waits for and what would help."""

import argparse
import json
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from functions.cli.kubeconfig import add_kubeconfig
from functions.cli.parser import Subparsers, add_cluster, add_command
from functions.cli.printable_text import printable_text
from functions.cli.run_command import one_cluster, refuse, run_command, run_or_refuse
from shared.model.codec import to_plain
from shared.model.errors import NotAttachedError, PermanentError
from shared.model.nearest import nearest

if TYPE_CHECKING:
    from functions.cli.doctor.runtime import DoctorRuntime
    from functions.cli.doctor.why import Answer, Why
    from functions.cli.doctor.why_group import WhyGroup
    from functions.cli.doctor.why_unattached import WhyUnattached

ANSWERED: Final = 0
_TEXT: Final = """\
Says of a pod or node what Dovetail did and decided, what it waits for and what would help; of a
workload where its pods are; of a NodePool what it has; of the cluster in five lines how it is.
Reads the cluster, the ledger and the recorded decisions, and changes nothing. Acts with your own
rights, as `dovetail doctor` does, and finds ledger and archive in the same way.

  dovetail why pod/default/web-0
  dovetail why pod/web-0                 in namespace default
  dovetail why node/ip-10-0-0-7.ec2.internal --cluster prod
  dovetail why deployment/shop/web       also statefulset, daemonset, job
  dovetail why nodepool/default
  dovetail why cluster
  dovetail why pod/shop/web-0 --context prod     beside Karpenter or others, without Dovetail

Kinds may be written as for kubectl: pods, po, deploy, nodepool.karpenter.sh.
"""
_CODES: Final = """exit codes:
  0  answered
  2  bad input, nothing of that name, or AWS or the cluster cannot be reached: one line says what
"""
_WITHOUT_DOVETAIL: Final = "or name a cluster without Dovetail with --context"
_NAMESPACED: Final = ("pod", "deployment", "statefulset", "daemonset", "job", "replicaset")
_WHOLE: Final = ("node", "nodepool", "provisioner")
_ABBREVIATIONS: Final = {
    "deploy": "deployment",
    "ds": "daemonset",
    "no": "node",
    "po": "pod",
    "rs": "replicaset",
    "sts": "statefulset",
}
_EXPECTED: Final = (
    "expected pod/NAMESPACE/NAME, pod/NAME, node/NAME, deployment/NAMESPACE/NAME (statefulset, "
    "daemonset, job), nodepool/NAME, provisioner/NAME or cluster"
)


def mount_why(subparsers: Subparsers, runtime: "Callable[[], DoctorRuntime] | None" = None) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code."""
    summary = "say what a pod, a node or a workload waits for, and why"
    parser = add_command(subparsers, "why", summary, _TEXT, _CODES)
    parser.add_argument("subject", metavar="SUBJECT", help=_EXPECTED.removeprefix("expected "))
    add_cluster(parser)
    add_kubeconfig(
        parser, "ask a cluster to which Dovetail is not attached; needs no AWS, knows no decisions"
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=lambda arguments: _run(arguments, runtime))


def _run(arguments: argparse.Namespace, runtime: "Callable[[], DoctorRuntime] | None") -> int:
    word, _, name = arguments.subject.partition("/")
    kind = _kind(word)
    known = kind in (*_NAMESPACED, *_WHOLE) and name and name.count("/") <= (kind in _NAMESPACED)
    if not known and arguments.subject != "cluster":
        near = nearest(kind, (*_NAMESPACED, *_WHOLE, "cluster"))
        meant = f"write {near}; " if near and near != kind else ""
        return refuse("why", f"{arguments.subject}: {meant}{_EXPECTED}")
    if arguments.kubeconfig or arguments.context:
        return run_or_refuse("why", lambda: _answer_unattached(arguments, kind, name))
    from functions.cli.doctor.runtime import DoctorRuntime  # noqa: PLC0415 -- not for --help

    return run_command(
        "why",
        lambda: runtime or DoctorRuntime,
        lambda make: _answer(make, arguments, kind, name),
    )


def _kind(word: str) -> str:
    """Return the kind that kubectl takes a word for: singular, plural or short, with its group.

    Source: https://kubernetes.io/docs/reference/kubectl/#syntax and #resource-types (2026-12).
    """
    name = word.lower().partition(".")[0]
    singular = name.removesuffix("s")
    return _ABBREVIATIONS.get(name, singular if singular in (*_NAMESPACED, *_WHOLE) else name)


def _answer(
    make: "Callable[[], DoctorRuntime]", arguments: argparse.Namespace, kind: str, name: str
) -> int:
    try:
        runtime = make()
        why, group = runtime.why(one_cluster(arguments.cluster, runtime.clusters))
    except PermanentError as error:
        raise NotAttachedError(f"{error}; {_WITHOUT_DOVETAIL}") from error
    return _print(arguments, _answer_about(why, group, kind, name))


def _answer_unattached(arguments: argparse.Namespace, kind: str, name: str) -> int:
    # Imported when it runs: `dovetail --help` needs none of it.
    from functions.cli.cluster_dump import dump_cluster, past_events, unread_notes  # noqa: PLC0415
    from functions.cli.doctor.why_unattached import WhyUnattached  # noqa: PLC0415
    from functions.cli.plan.inputs import read_catalog  # noqa: PLC0415
    from functions.cli.plan.reading.documents import Document  # noqa: PLC0415
    from functions.cli.plan.reading.running_cluster import read_running_cluster  # noqa: PLC0415

    unread: dict[str, str] = {}
    dump = dump_cluster(arguments.kubeconfig, unread, arguments.context)
    documents = [Document(where="cluster", raw=raw) for raw in dump]
    running = read_running_cluster(documents, read_catalog(None))
    options = "".join(
        f" --{name} {shlex.quote(value)}"
        for name, value in (("kubeconfig", arguments.kubeconfig), ("context", arguments.context))
        if value
    )
    events = past_events(arguments.kubeconfig, arguments.context)
    why = WhyUnattached(running, events, arguments.context or "", options)
    code = _print(arguments, _answer_about(why, why, kind, name))
    notes = (*unread_notes(unread), *running.notes)
    sys.stderr.write(printable_text(f"note: {note}" for note in notes))
    return code


def _print(arguments: argparse.Namespace, answer: "Answer") -> int:
    sys.stdout.write(_as_json(answer) if arguments.output == "json" else _as_text(answer))
    return ANSWERED


def _answer_about(
    why: "Why | WhyUnattached", group: "WhyGroup | WhyUnattached", kind: str, name: str
) -> "Answer":
    namespace, _, short = name.rpartition("/")
    match kind:
        case "node":
            return why.node(name)
        case "pod":
            return why.pod(namespace or "default", short)
        case "cluster":
            return group.cluster()
        case "nodepool" | "provisioner":
            return group.owner(kind, name)
        case _:
            return group.workload(kind, namespace or "default", short)


def _as_text(answer: "Answer") -> str:
    lines = [f"{answer.subject} {answer.state}"]
    parts = (
        ("now", answer.current),
        ("what happened", answer.history),
        ("what comes next, as things are", answer.outlook),
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
