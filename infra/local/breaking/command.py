"""`dovetail break`: breaks something in a running `dovetail up`, and keeps the score."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from functions.cli.local_world import HELP
from functions.cli.parser import add_command, number_up_to
from infra.local.demo.problem import guarded

_DURATION: Final = number_up_to(3600, "seconds")
_SCORES: Final = "scoreboard.json"
_PLAIN_WIDTH: Final = 160
_SURVIVED: Final = 0
_NOT_SURVIVED: Final = 1
_TEXT: Final = """\
Breaks one thing in a world that `dovetail up` keeps running, watches until every pod runs on a
Ready node and each instance is a node, and prints the scoreboard of all that was broken since the
world began. Without a fault it prints the scoreboard alone. Run it in a terminal with the export
lines of `up`; have some pods there first, for an empty cluster survives everything:

  kubectl apply -f examples/inflate/provisioner.yaml -f examples/inflate/deployment.yaml
  kubectl scale deployment inflate --replicas 10
  dovetail break spot-warning
"""
_CODES: Final = """exit codes:
  0  survived, or only the scoreboard was asked for
  1  not within the time, or it never came to the test: the table says which
  2  bad input: one line says what and how to mend it
"""
_SPOT_WARNING: Final = """\
EC2 takes spot instances back two minutes after a warning. Dovetail hears the warning, requests a
replacement within seconds and drains the node; PodDisruptionBudgets hold that for 90 seconds at
most. Evicted pods wait while the replacement boots. To see: `kubectl get nodes -w`.
"""
_CAPACITY: Final = """\
EC2 answers InsufficientInstanceCapacity, as it does when a pool is empty. Dovetail takes the next
best option, and remembers for some minutes what was refused. Nothing happens until something is
bought, so scale a workload up meanwhile. Where a Provisioner allows nothing else, pods wait until
it is over.
"""
_KILL_FUNCTION: Final = """\
The worst moment to die: EC2 has launched instances, and the function that asked does not know of
them yet. Its intent was recorded before; when its lease has run out, the next function finds the
instances by their tags, and none is bought twice. Nothing happens until something is launched, so
scale a workload up. It stays armed until then.
"""
_THROTTLE: Final = """\
AWS refuses calls of an account that makes too many: RequestLimitExceeded of EC2,
ThrottlingException of others. The functions try again with growing pauses, the queue and the
minute's sweep come back to what was left. Scale a workload up meanwhile.
"""
_API_SERVER: Final = """\
The API server stops and does not answer, not even kubectl. Nothing may be launched or terminated
on what was known before; that is checked. When it answers again the forwarder lists anew, and
what was missed is made up for.
"""


def mount(subparsers: Any) -> None:
    parser = add_command(subparsers, "break", HELP["break"], _TEXT, _CODES)
    _common(parser)
    parser.set_defaults(run=guarded(_run), fault=None)
    faults = parser.add_subparsers(metavar="FAULT")

    def fault(name: str, title: str, text: str) -> Any:
        added = add_command(faults, name, title, text, _CODES)
        _common(added)
        added.set_defaults(fault=name)
        return added

    spot = fault("spot-warning", "EC2 warns that it takes a spot node, and takes it", _SPOT_WARNING)
    spot.add_argument("--node", metavar="NAME", help="which one (the spot node with most pods)")
    _seconds(spot, 120, "from the warning to the end")
    empty = fault("capacity", "EC2 has no instances of a kind", _CAPACITY)
    empty.add_argument("--type", metavar="TYPE", help="of this instance type (all)")
    empty.add_argument(
        "--capacity-type",
        choices=("spot", "on-demand"),
        help="of this capacity type (spot, or both with --type)",
    )
    _seconds(empty, 120, "how long")
    fault("kill-function", "kill provision between launch and answer", _KILL_FUNCTION)
    slow = fault("throttle", "an AWS service refuses the functions' calls", _THROTTLE)
    slow.add_argument("--service", choices=("ec2", "dynamodb", "s3", "ssm"), default="ec2")
    _seconds(slow, 60, "how long")
    _seconds(fault("api-server", "the API server does not answer", _API_SERVER), 20, "how long")


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="that `up` wrote (KUBECONFIG)",
    )
    parser.add_argument(
        "--within",
        type=_DURATION,
        default=argparse.SUPPRESS,
        metavar="SECONDS",
        help="how long it may take until every pod runs again (600)",
    )


def _seconds(parser: argparse.ArgumentParser, usual: float, what: str) -> None:
    parser.add_argument(
        "--seconds", type=_DURATION, default=usual, metavar="N", help=f"{what} ({usual:g})"
    )


def _run(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from infra.local.breaking.faults import BEGIN
    from infra.local.breaking.running_world import find_world
    from infra.local.breaking.scoreboard import Verdict, keep_score, read_scores, table_of
    from infra.local.breaking.trial import Hands, Trial
    from infra.local.demo.screen import say
    from infra.local.surroundings import stand_alone

    stand_alone(os.environ)
    chosen = getattr(arguments, "kubeconfig", None) or os.environ.get("KUBECONFIG", "")
    world = find_world(chosen)
    # In a file or a pipe each row of the scoreboard is one line.
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    path = Path(world.folder, _SCORES)
    if arguments.fault is None:
        scores = read_scores(path)
        if not scores:
            sys.stdout.write("Nothing was broken yet: dovetail break --help lists what can be\n")
            return _SURVIVED
        console.print(table_of(scores))
        return _SURVIVED
    trial = Trial(world, arguments.fault, Hands(say=partial(say, console)))
    begin = partial(BEGIN[arguments.fault], world, arguments)
    score = trial.run(begin, getattr(arguments, "within", 600.0))
    console.print(table_of(keep_score(path, score)))
    return _SURVIVED if score.verdict is Verdict.SURVIVED else _NOT_SURVIVED
