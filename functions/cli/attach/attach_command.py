"""`dovetail attach` and `dovetail detach`: apply what Dovetail needs in a cluster, or remove it."""

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from functions.cli.kubeconfig import add_kubeconfig
from functions.cli.parser import Subparsers, add_command
from functions.cli.run_command import refuse, run_command
from shared.model.errors import RetryableError

if TYPE_CHECKING:
    from functions.cli.attach.objects import ObjectKey
    from functions.cli.attach.progress import Progress
    from functions.cli.attach.runtime import ConnectionOptions, InstallationRuntime
    from functions.cli.attach.steps import InstallationStep

DONE: Final = 0
NOT_DONE: Final = 1
_POLL: Final = timedelta(seconds=2)
_GONE_WITHIN: Final = timedelta(minutes=3)
MakeRuntime = Callable[["ConnectionOptions"], "InstallationRuntime"]
_ATTACH: Final = """\
Applies what Dovetail needs in a cluster: the definitions of its kinds, the rights of its functions,
and the forwarder. Shows first what it would do, asks, and ends once a heartbeat of the forwarder
has come through. May be run again at any time; then it changes what differs. Definitions that
another release has applied, as Karpenter's own, are left as they are, and then none is applied.

Acts with your kubeconfig in the cluster and with your credentials in AWS.

  dovetail attach prod --dry-run
  dovetail attach prod --context prod
"""
_DETACH: Final = """\
Removes from a cluster what attach has applied: the forwarder, the rights, the definitions. Keeps
what you wrote: a definition while an object of it exists, and the namespace while anything else is
in it. Refuses while Nodes of Dovetail exist: only its functions remove their finalizer.

Acts with your kubeconfig in the cluster and with your credentials in AWS.

  dovetail detach prod --dry-run
  dovetail detach prod --leave-nodes
"""
_CODES: Final = """exit codes:
  0  done, or shown by --dry-run
  1  not done: the forwarder is silent, Nodes exist, something stays, or you said no
  2  bad input, or AWS or the cluster cannot be reached: one line says what
"""


def mount_attach(
    subparsers: Subparsers,
    make_attach: MakeRuntime | None = None,
    make_detach: MakeRuntime | None = None,
) -> None:
    """Add both commands; their parsed namespace has a `run` that returns the exit code."""
    attach = _command(subparsers, "attach", "apply what Dovetail needs in a cluster", _ATTACH)
    attach.add_argument(
        "--image", metavar="IMAGE", help="the forwarder's; by default the one deployed"
    )
    attach.add_argument(
        "--wait",
        type=int,
        default=300,
        metavar="SECONDS",
        help="longest wait for the forwarder's heartbeat; 0 for none (%(default)s)",
    )
    attach.set_defaults(run=lambda arguments: _run("attach", arguments, make_attach, _attach))
    detach = _command(subparsers, "detach", "remove it again; keeps what you wrote", _DETACH)
    detach.add_argument(
        "--leave-nodes",
        action="store_true",
        help="although Nodes of Dovetail exist: nothing will remove their finalizer",
    )
    detach.set_defaults(run=lambda arguments: _run("detach", arguments, make_detach, _detach))


def _command(subparsers: Subparsers, name: str, summary: str, text: str) -> argparse.ArgumentParser:
    parser = add_command(subparsers, name, summary, text, _CODES)
    parser.add_argument("cluster", metavar="CLUSTER", help="name of the EKS cluster")
    add_kubeconfig(parser)
    parser.add_argument(
        "--any-address",
        action="store_true",
        help="the file has another address than EKS, as behind a proxy",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and end")
    return parser


def _run(
    name: str,
    arguments: argparse.Namespace,
    make_runtime: MakeRuntime | None,
    command_body: Callable[["InstallationRuntime", argparse.Namespace], int],
) -> int:
    # Imported when it runs: `dovetail --help` needs none of it.
    from functions.cli.attach.runtime import (  # noqa: PLC0415
        ConnectionOptions,
        installation_runtime,
    )

    make = make_runtime or partial(installation_runtime, needs_control_plane=name == "attach")
    options = ConnectionOptions(
        cluster=arguments.cluster,
        kubeconfig=arguments.kubeconfig,
        context=arguments.context,
        any_address=arguments.any_address,
    )
    return run_command(
        name, lambda: make(options), lambda runtime: command_body(runtime, arguments)
    )


def _attach(runtime: "InstallationRuntime", arguments: argparse.Namespace) -> int:
    from functions.cli.attach.manifests import (  # noqa: PLC0415 -- not for --help
        installation_manifests,
    )
    from functions.cli.attach.runtime import cluster_manifests  # noqa: PLC0415
    from functions.cli.attach.steps import attach_steps  # noqa: PLC0415
    from shared.settings import IMAGE  # noqa: PLC0415

    if arguments.wait < 0:
        return refuse("attach", f"--wait: {arguments.wait}: give whole seconds, 0 for none")
    deployed = runtime.attachment().forwarder_image
    image = arguments.image or deployed
    if not IMAGE.match(image):
        return refuse("attach", f"--image: {image!r}: give <registry>/dovetail/forwarder:<tag>")
    wanted = installation_manifests(cluster_manifests(), cluster=runtime.cluster, image=image)
    steps = attach_steps(runtime.objects, wanted)
    sys.stdout.write(f"attach {runtime.cluster} at {runtime.address}; forwarder {image}\n")
    if not _confirm_and_apply("attach", runtime, steps, arguments):
        return DONE if arguments.dry_run else NOT_DONE
    if not arguments.wait:
        return DONE
    return _wait_for_heartbeat(runtime, timedelta(seconds=arguments.wait))


def _detach(runtime: "InstallationRuntime", arguments: argparse.Namespace) -> int:
    from functions.cli.attach.manifests import installation_manifests  # noqa: PLC0415 -- not for --help
    from functions.cli.attach.runtime import cluster_manifests  # noqa: PLC0415
    from functions.cli.attach.steps import detach_steps  # noqa: PLC0415

    wanted = installation_manifests(cluster_manifests(), cluster=runtime.cluster, image="")
    steps = detach_steps(runtime.objects, wanted)
    sys.stdout.write(f"detach {runtime.cluster} at {runtime.address}\n")
    held = _detach_blocker(runtime)
    if held and not arguments.leave_nodes:
        sys.stdout.write(steps_text(steps))
        sys.stderr.write(f"dovetail detach: nothing is changed: {held}\n")
        return NOT_DONE
    if not _confirm_and_apply("detach", runtime, steps, arguments):
        return DONE if arguments.dry_run else NOT_DONE
    left = _wait_until_gone(runtime, steps)
    if left:
        sys.stderr.write(
            f"dovetail detach: {left[0]}{_more(left)} still there after "
            f"{_GONE_WITHIN.total_seconds():.0f} s: kubectl get {left[0].kind.lower()} "
            f"{left[0].name} -o yaml says in its status or finalizers what keeps it\n"
        )
        return NOT_DONE
    stack = f"DovetailCluster-{runtime.cluster.replace('_', '-')}"
    sys.stdout.write(
        f"detached; next, its stack: npx cdk destroy {stack}, with the -c options it was deployed "
        "with\n"
    )
    return DONE


def _wait_until_gone(
    runtime: "InstallationRuntime", steps: "Sequence[InstallationStep]"
) -> "Sequence[ObjectKey]":
    """Wait until the deleted objects are gone; return those that still exist."""
    from functions.cli.attach.steps import remaining  # noqa: PLC0415 -- not for --help

    ends = runtime.clock.now() + _GONE_WITHIN
    announced = False
    while left := remaining(runtime.objects, steps):
        if runtime.clock.now() >= ends:
            break
        if not announced:
            announced = True
            sys.stdout.write(f"waiting until {left[0]}{_more(left)} gone\n")
            sys.stdout.flush()
        runtime.clock.sleep(_POLL)
    return left


def _more(keys: "Sequence[ObjectKey]") -> str:
    """Return how many others there are besides the first, with the verb for all of them."""
    return f" and {len(keys) - 1} more are" if len(keys) > 1 else " is"


def _detach_blocker(runtime: "InstallationRuntime") -> str:
    """Return why a cluster cannot be detached yet, with the remedy; empty if it can."""
    nodes = runtime.node_names()
    if nodes:
        named = f"{len(nodes)} Nodes of Dovetail exist, as {nodes[0]}"
        if len(nodes) == 1:
            named = f"Node {nodes[0]} of Dovetail exists"
        return (
            f"{named}: pause Provisioners and NodePools and delete the Nodes "
            "(docs/operations/uninstall.md), or give --leave-nodes: then nothing removes their "
            "finalizer"
        )
    launches = runtime.open_launch_count()
    if launches:
        return (
            "a launch is under way: pause Provisioners and NodePools and wait a minute, or give "
            "--leave-nodes"
        )
    return ""


def _confirm_and_apply(
    name: str,
    runtime: "InstallationRuntime",
    steps: "Sequence[InstallationStep]",
    arguments: argparse.Namespace,
) -> bool:
    """Show the steps, ask, and carry them out; return whether that was done."""
    from functions.cli.attach.steps import apply_steps  # noqa: PLC0415 -- not for --help

    sys.stdout.write(steps_text(steps))
    sys.stdout.flush()
    if arguments.dry_run:
        return False
    if (
        not arguments.yes
        and any(step.action in _WRITES for step in steps)
        and not _is_confirmed(name)
    ):
        sys.stderr.write(f"dovetail {name}: nothing is changed\n")
        return False
    apply_steps(runtime.objects, steps, _print_step)
    return True


_WRITES: Final = ("create", "change", "delete")
_DONE_WORDS: Final = {"create": "created", "change": "changed", "delete": "deleted"}


def _is_confirmed(name: str) -> bool:
    if not sys.stdin.isatty():
        sys.stderr.write(f"dovetail {name}: no terminal to ask at: give --yes\n")
        return False
    sys.stdout.write("go on? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _print_step(step: "InstallationStep") -> None:
    sys.stdout.write(f"{_DONE_WORDS[step.action.value]} {step.key}\n")
    sys.stdout.flush()


def steps_text(steps: "Sequence[InstallationStep]") -> str:
    """Return a line for each step; those that change nothing are counted."""
    lines = [
        f"  {step.action.value:<9} {step.key}{f': {step.text}' if step.text else ''}"
        for step in steps
        if step.action.value != "unchanged"
    ]
    unchanged = len(steps) - len(lines)
    if unchanged:
        lines.append(f"  {unchanged} unchanged")
    return "\n".join([*lines, ""])


def _wait_for_heartbeat(runtime: "InstallationRuntime", longest: timedelta) -> int:
    """Wait for the forwarder's heartbeat and print the progress; return the exit code."""
    ends = runtime.clock.now() + longest
    last_text = ""
    while True:
        progress = _progress(runtime)
        if progress.text != last_text:
            last_text = progress.text
            sys.stdout.write(f"forwarder: {last_text}\n")
            sys.stdout.flush()
        if progress.done:
            sys.stdout.write(f"{runtime.cluster} is attached\n")
            return DONE
        if runtime.clock.now() >= ends:
            break
        runtime.clock.sleep(_POLL)
    sys.stderr.write(
        f"dovetail attach: no heartbeat within {longest.total_seconds():.0f} s: {last_text}\n"
        + "".join(
            f"  look at: {command}\n" for command in _diagnostic_commands(runtime.cluster, progress)
        )
        + "  what it can be: docs/operations/forwarder-silent.md\n"
    )
    return NOT_DONE


def _progress(runtime: "InstallationRuntime") -> "Progress":
    from functions.cli.attach.manifests import (  # noqa: PLC0415 -- not for --help
        FORWARDER_KEY,
        NAMESPACE,
    )
    from functions.cli.attach.progress import (  # noqa: PLC0415
        Progress,
        forwarder_progress,
    )

    try:
        deployment = runtime.objects.find(FORWARDER_KEY)
        pods = runtime.objects.pods(NAMESPACE)
        return forwarder_progress(deployment, pods, runtime.last_heartbeat(), runtime.clock.now())
    except RetryableError as error:
        return Progress(done=False, runs=False, text=f"cannot be seen: {error}")


def _diagnostic_commands(cluster: str, progress: "Progress") -> Sequence[str]:
    """Return the commands that show why there is no heartbeat."""
    if not progress.runs:
        return (
            "kubectl -n dovetail describe pods",
            "kubectl -n dovetail describe deployment dovetail-forwarder",
        )
    return (
        "kubectl -n dovetail logs deployment/dovetail-forwarder --tail=50",
        f"aws eks describe-addon --cluster-name {cluster} --addon-name eks-pod-identity-agent",
        f"dovetail doctor --prerequisites --cluster {cluster}",
    )
