"""The `dovetail` command."""

import argparse
import json
import os
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra.local.demo.problem import Problem

_EXIT_CODES = """exit codes:
  0  everything that was expected held
  1  an expectation did not hold
  2  bad input: one line says what and how to mend it
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command of `dovetail`; return its exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except Problem as problem:
        sys.stderr.write(f"dovetail: {problem}\n")
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dovetail",
        description="An event-driven, serverless node autoscaler for Kubernetes on AWS.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="run a scenario on this machine and show what happened",
        description=(
            "Starts the embedded AWS and Kubernetes APIs, deploys the CDK template into them, "
            "plays a scenario and checks what must come of it. Ends by itself."
        ),
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument("--scenario", default="inflate", help="a folder of examples/ (inflate)")
    demo.add_argument("--examples", type=Path, help="folder of scenarios, if not examples/")
    demo.add_argument("--report", type=Path, help="write the summary as JSON to this file")
    _speed(demo)
    _cluster(demo)
    demo.set_defaults(run=_demo)
    up = commands.add_parser(
        "up",
        help="keep the same world running for kubectl and the aws CLI",
        description="Prints a kubeconfig and the AWS endpoint; Ctrl-C leaves nothing behind.",
    )
    _speed(up)
    _cluster(up)
    up.set_defaults(run=_up)
    scenarios = commands.add_parser("scenarios", help="list the scenarios")
    scenarios.set_defaults(run=_scenarios)
    return parser


def _speed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--speed",
        type=_positive,
        default=1.0,
        metavar="N",
        help="machines boot, pods start and ttls of applied manifests end N times faster (1)",
    )
    parser.add_argument("--keep-logs", type=Path, metavar="DIR", help="copy all logs there")


def _cluster(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="use this API server in place of the embedded one; nothing is read from KUBECONFIG",
    )
    add("--bare", action="store_true", help="that server has neither scheduler nor controllers")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(f"{text}: give a number above 0, at most 1000")
    return value


def _scenarios(_: argparse.Namespace) -> int:
    from infra.local.demo.scenario import load_scenario, scenario_names

    for name in scenario_names():
        sys.stdout.write(f"{name:14} {load_scenario(name).title}\n")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from infra.local.demo.scenario import EXAMPLES, load_scenario
    from infra.local.demo.screen import print_summary

    scenario = load_scenario(arguments.scenario, arguments.examples or EXAMPLES)
    console = Console()
    report = play_scenario(scenario, _options(arguments), console)
    print_summary(console, report)
    if arguments.report is not None:
        arguments.report.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0 if report["passed"] else 1


def _options(arguments: argparse.Namespace) -> Any:
    from infra.local.demo.foreign import require_allowed_kubeconfig
    from infra.local.demo.world import WorldOptions

    if arguments.kubeconfig is not None:
        allowed = os.environ.get("TEST_CLUSTER_OK", "")
        require_allowed_kubeconfig(arguments.kubeconfig, allowed)
    return WorldOptions(
        speed=arguments.speed,
        keep_logs=arguments.keep_logs,
        kubeconfig=arguments.kubeconfig,
        bare=arguments.bare,
    )


def play_scenario(scenario: Any, options: Any, console: Any) -> Any:
    """Play a scenario in a world of its own and return its report."""
    from infra.local.demo.observer import Observer
    from infra.local.demo.play import Player
    from infra.local.demo.report import Moment, build_report
    from infra.local.demo.screen import Screen
    from infra.local.demo.world import World

    with Screen(console) as screen, World(options, screen.say) as world:
        if world.foreign is not None:
            world.foreign.require_room()
        observer = Observer(world.cluster, world.client("ec2"), screen.refresh)
        moment = Moment(wall=datetime.now(UTC), observed=observer.now())
        observer.start()
        screen.watch(observer)
        try:
            results = Player(world.cluster, observer, options.speed, screen.say).play(scenario)
        finally:
            observer.stop()
        return build_report(scenario.name, results, world, observer.timeline, moment)


def _up(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from infra.local.demo.world import World

    console = Console()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with World(
        _options(arguments), lambda stage: console.print(f"[bold]•[/bold] {stage}")
    ) as world:
        lines = [f"export KUBECONFIG={world.kubeconfig}"]
        lines += [f"export {key}={value}" for key, value in world.aws_environment.items()]
        console.print("\nThe world is up. In another terminal:\n")
        for line in lines:
            sys.stdout.write(f"  {line}\n")
        console.print("\nThen: kubectl apply -f examples/inflate/ ... Ctrl-C ends it.")
        sys.stdout.flush()
        while not ended.wait(0.5):
            for child in ("aws", "kube", "sim", "forwarder"):
                if not world.children.alive(child):
                    raise Problem(f"{child} ended by itself: run again with --keep-logs DIR")
    return 0


if __name__ == "__main__":
    sys.exit(main())
