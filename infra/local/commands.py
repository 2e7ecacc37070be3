"""The commands of the local world: `dovetail demo`, `up`, `break` and `scenarios`."""

import argparse
import functools
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from functions.cli.local_world import HELP
from functions.cli.parser import EXIT_CODES, add_command, number_up_to, unwritable
from functions.cli.private_file import write_private_file
from infra.local.breaking.command import mount as mount_breaking
from infra.local.demo.problem import Problem, guarded
from infra.local.surroundings import stand_alone

# Of each extra that a world needs, a module that it brings.
_EXTRAS = {"infra": "aws_cdk", "local": "moto"}
_EXPORTS_BY = "# Written by dovetail up, and removed at its end."
_KUBECONFIG = "export KUBECONFIG="
_THEN = """
Then, for example:

  kubectl apply -f examples/inflate/provisioner.yaml -f examples/inflate/deployment.yaml
  kubectl scale deployment inflate --replicas 10
  kubectl get nodes -L karpenter.sh/capacity-type,node.kubernetes.io/instance-type
  dovetail break spot-warning      (dovetail break --help lists what else can be broken)

Logs: {folder}/*.log of the processes, {folder}/logs/ of the functions (`aws logs` has none).
Ctrl-C ends it and leaves nothing behind.
"""


def mount(subparsers: Any) -> None:
    """Add the commands; each parsed namespace has a `run` that returns the exit code."""
    demo = add_command(
        subparsers,
        "demo",
        HELP["demo"],
        "Starts the embedded AWS and Kubernetes APIs, deploys the CDK template into them,\n"
        "plays a scenario and checks what must come of it. Ends by itself.\n\n"
        "  dovetail demo\n"
        "  dovetail demo --scenario interrupt --report report.json",
        EXIT_CODES,
    )
    demo.add_argument(
        "--scenario",
        default="inflate",
        metavar="NAME",
        help="one of `dovetail scenarios` (inflate)",
    )
    demo.add_argument(
        "--examples", type=Path, metavar="DIR", help="folder of scenarios, if not examples/"
    )
    demo.add_argument(
        "--report", type=Path, metavar="FILE", help="write the summary as JSON to this file"
    )
    _speed(demo, "instances boot, pods start and ttls of applied manifests end", usual=5.0)
    _cluster(demo)
    demo.set_defaults(run=guarded(_demo))
    up = add_command(
        subparsers,
        "up",
        HELP["up"],
        "Starts the same world as demo and keeps it running. Prints a kubeconfig and the AWS\n"
        "endpoint; Ctrl-C leaves nothing behind. Manifests are applied as they are: give\n"
        "short ttls yourself.\n\n"
        "  dovetail up\n"
        "  dovetail up --exports world.sh         in another terminal: . ./world.sh",
    )
    _speed(up, "instances boot and pods start", usual=1.0)
    up.add_argument(
        "--exports",
        type=Path,
        metavar="FILE",
        help="write the exports to this file, to be read with `. FILE`; removed at the end",
    )
    _cluster(up)
    up.set_defaults(run=guarded(_up))
    mount_breaking(subparsers)
    text = "Lists what demo can play.\n\n  dovetail scenarios\n  dovetail demo --scenario spread"
    scenarios = add_command(subparsers, "scenarios", HELP["scenarios"], text)
    scenarios.set_defaults(run=guarded(_scenarios))


def _require_packages() -> None:
    """Raise Problem if this checkout is used without the packages that a world needs."""
    lacking = [extra for extra, module in _EXTRAS.items() if find_spec(module) is None]
    if lacking:
        named = f"extra{'s' if lacking[1:] else ''} {' and '.join(lacking)}"
        raise Problem(f"not installed: the {named} of this package: make setup")


def _speed(parser: argparse.ArgumentParser, what: str, *, usual: float) -> None:
    parser.add_argument(
        "--speed",
        type=number_up_to(1000),
        default=usual,
        metavar="N",
        help=f"{what} N times faster ({usual:g})",
    )
    parser.add_argument("--keep-logs", type=Path, metavar="DIR", help="copy all logs there")


def _cluster(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="use this API server in place of the embedded one (KUBECONFIG is never read); one "
        "that is not on this machine must be named in TEST_CLUSTER_OK",
    )
    add("--bare", action="store_true", help="that server has neither scheduler nor controllers")


def _writable(path: Path, option: str = "--report") -> Path:
    """Return the path of a file to be written; said before the work, not after it."""
    if why := unwritable(option, str(path)):
        raise Problem(why)
    return path


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"--keep-logs {folder}: {error.strerror}: name another folder") from error
    return folder


def _scenarios(_: argparse.Namespace) -> int:
    from infra.local.demo.scenario import load_scenario, scenario_names

    names = scenario_names()
    width = max(map(len, names))
    for name in names:
        sys.stdout.write(f"{name:{width}}  {load_scenario(name).title}\n")
    sys.stdout.flush()
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from infra.local.demo.scenario import EXAMPLES, load_scenario
    from infra.local.demo.screen import print_summary

    _require_packages()
    scenario = load_scenario(arguments.scenario, arguments.examples or EXAMPLES)
    target = None if arguments.report is None else _writable(arguments.report)
    stand_alone(os.environ)
    console = Console()
    report = play_scenario(scenario, _options(arguments), console)
    print_summary(console, report)
    if target is not None:
        target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0 if report["passed"] else 1


def _options(arguments: argparse.Namespace) -> Any:
    from infra.local.demo.external_cluster import require_allowed_kubeconfig
    from infra.local.demo.world import WorldOptions

    if arguments.kubeconfig is None:
        if arguments.bare:
            raise Problem("--bare: needs a server: name it with --kubeconfig FILE")
    else:
        allowed = os.environ.get("TEST_CLUSTER_OK", "")
        require_allowed_kubeconfig(arguments.kubeconfig, allowed)
    return WorldOptions(
        speed=arguments.speed,
        keep_logs=None if arguments.keep_logs is None else _made(arguments.keep_logs),
        kubeconfig=arguments.kubeconfig,
        bare=arguments.bare,
    )


def play_scenario(
    scenario: Any,
    options: Any,
    console: Any,
    machines: Callable[[Any], AbstractContextManager[Any]] = nullcontext,
) -> Any:
    """Play a scenario in a world of its own and return its report.

    Args:
        machines: Entered with the world while the scenario is played: what gives instances their
            kubelets where the world does not.
    """
    from dataclasses import replace

    from infra.local.demo.fault_injection import FaultInjection
    from infra.local.demo.observer import Observer
    from infra.local.demo.play import Player
    from infra.local.demo.report import Moment, build_report
    from infra.local.demo.screen import Screen
    from infra.local.demo.world import World

    options = replace(options, settings=scenario.settings)
    with Screen(console) as screen, World(options, screen.say) as world:
        if world.foreign is not None:
            world.foreign.require_room()
        observer = Observer(world.cluster, world.client("ec2"), screen.refresh)
        moment = Moment(wall=datetime.now(UTC), observed=observer.now())
        observer.start()
        screen.watch(observer)
        try:
            server = functools.partial(world.children.pid, "kube")
            faults = FaultInjection(world.control, world.client, server)
            player = Player(world.cluster, observer, options.speed, screen.begin, faults)
            player.karpenter = world.karpenter
            with machines(world):
                results = player.play(scenario)
        finally:
            observer.stop()
        return build_report(scenario.name, results, world, observer.timeline, moment)


def _up(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from infra.local.demo.screen import say as say_on
    from infra.local.demo.world import World
    from infra.local.watcher import Watcher

    _require_packages()
    console = Console()
    say = functools.partial(say_on, console)
    options = _options(arguments)
    exports = None if arguments.exports is None else _own_file(arguments.exports)
    lines = stand_alone(os.environ)

    with World(options, say) as world, ExitStack() as stack:
        lines += [f"{_KUBECONFIG}{world.kubeconfig}"]
        lines += [f"export {key}={value}" for key, value in world.aws_environment.items()]
        if exports is not None:
            stack.callback(_remove_exports, exports, _write_exports(exports, lines))
            lines = [f". {shlex.quote(str(exports.resolve()))}"]
        console.print("\nThe world is up. In another terminal:\n")
        for line in lines:
            sys.stdout.write(f"  {line}\n")
        sys.stdout.write(_THEN.format(folder=world.folder))
        sys.stdout.flush()
        try:
            Watcher(world, say).watch()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            say("ending what was started")
    return 0


def _own_file(path: Path) -> Path:
    """Return the path of the exports: a new file, or one of a world that has ended."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else _EXPORTS_BY
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"--exports {path}: is there already: name a file that is not") from error
    if not text.startswith(_EXPORTS_BY):
        raise Problem(f"--exports {path}: is there already: name a file that is not")
    for line in text.splitlines():
        if line.startswith(_KUBECONFIG) and Path(line.removeprefix(_KUBECONFIG)).exists():
            raise Problem(
                f"--exports {path}: belongs to a world that runs: end it, name another file, "
                "or remove this one"
            )
    return _writable(path, "--exports")


def _write_exports(path: Path, lines: Sequence[str]) -> str:
    text = "".join(f"{line}\n" for line in (_EXPORTS_BY, *lines))
    write_private_file(path, text)
    return text


def _remove_exports(path: Path, own: str) -> None:
    """Remove the exports, unless another world has written its own there meanwhile."""
    with suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == own:
            path.unlink()
