"""`dovetail watch` and `dovetail top`: one cluster, seen live; both only read."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from functions.cli.kubeconfig import add_kubeconfig
from functions.cli.parser import Subparsers, add_cluster, add_command, number_up_to
from functions.cli.printable_text import printable_text
from functions.cli.run_command import refuse, run_or_refuse
from shared.model.errors import UnavailableError

if TYPE_CHECKING:
    from functions.cli.watch.live import LiveCluster

ENDED: Final = 0
_WATCH_TEXT: Final = """\
Serves a page on this machine that shows a cluster live: its nodes and what fills them, which are
coming and what they wait for, which are going and why, pods that wait and why, dollars per hour
with their proved lower bound, and the last decisions. Reads the cluster with a kubeconfig file and,
where your credentials allow it, Dovetail's ledger and decisions; writes nothing.

  dovetail watch
  dovetail watch --kubeconfig ~/.kube/prod --cluster prod --port 7373
  dovetail watch --recording demo.jsonl
"""
_TOP_TEXT: Final = """\
Shows the same as `dovetail watch` in this terminal; once, where the output is no terminal.
With --lines a line is printed for each decision and each removal instead, until Ctrl-C: what was
planned, launched or removed, dollars per hour, the gap to the proved lower bound, and why.

  dovetail top
  dovetail top --node-selector karpenter.sh/nodepool=general --node-sort price=dsc
  dovetail top --extra-labels topology.kubernetes.io/zone,team
  dovetail top --lines --kubeconfig ~/.kube/prod --cluster prod

Keys: s sorts by something else, r turns the order, the arrows and page keys scroll, q quits.
"""
_CODES: Final = """exit codes:
  0  ended by Ctrl-C, or shown once
  2  bad input, or the cluster cannot be reached: one line says what
"""
# For `dovetail top | grep m5.large`: wide enough for every name.
_PIPED_COLUMNS: Final = 200
_SYNC_SECONDS: Final = 30.0
_BOUND_SECONDS: Final = 15.0
_REFRESH_SECONDS: Final = 0.25
# Nodes whose removal begins within this time are reported together.
_LINES_SECONDS: Final = 1.0


def mount_watch_commands(subparsers: Subparsers) -> None:
    """Add the commands; each parsed namespace has a `run` that returns the exit code."""
    summary = "serve a page that shows a cluster live"
    watch = add_command(subparsers, "watch", summary, _WATCH_TEXT, _CODES)
    _cluster_options(watch)
    watch.add_argument("--port", type=_port, default=0, metavar="N", help="on 127.0.0.1 (any free)")
    watch.add_argument("--record", metavar="FILE", help="write what is shown to this file, too")
    watch.add_argument("--recording", metavar="FILE", help="play such a file instead of a cluster")
    speed = number_up_to(1000)
    watch.add_argument(
        "--speed", type=speed, default=1.0, metavar="N", help="play it N times faster (1)"
    )
    watch.add_argument(
        "--address-file", metavar="FILE", help="write the address to this file, for you alone"
    )
    watch.set_defaults(run=_watch)
    top = add_command(subparsers, "top", "show a cluster live in this terminal", _TOP_TEXT, _CODES)
    _cluster_options(top)
    top.add_argument(
        "--lines", action="store_true", help="a line for each decision, in place of the picture"
    )
    top.add_argument(
        "--node-selector",
        type=_selector,
        metavar="LABELS",
        help="only nodes with these labels, as kubectl's -l; no bound is proved then",
    )
    top.add_argument(
        "--extra-labels",
        type=lambda text: tuple(key for key in text.split(",") if key),
        default=(),
        metavar="KEYS",
        help="a column for each of these labels, separated by commas",
    )
    top.add_argument(
        "--node-sort",
        type=_order,
        default="state",
        metavar="KEY",
        help="state, creation, name, cpu, memory, price or a label, with =asc or =dsc (state)",
    )
    top.set_defaults(run=partial(_run_until_interrupted, "top", _show))


def _cluster_options(parser: argparse.ArgumentParser) -> None:
    add_kubeconfig(parser)
    add_cluster(parser)
    parser.add_argument(
        "--catalog",
        metavar="FILE",
        help="prices where AWS cannot be asked, as `dovetail catalog` writes them (us-east-1)",
    )


def _selector(text: str) -> Any:
    from functions.cli.watch.top_options import node_selector  # noqa: PLC0415 -- not for --help

    return _parsed(node_selector, text)


def _order(text: str) -> Any:
    from functions.cli.watch.top_options import Order  # noqa: PLC0415 -- not for --help

    return _parsed(Order.parse, text)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    """Return what was parsed; argparse prints what is wrong only of an error of its own."""
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) < 65_536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text}: give a port from 0 to 65535")


def _watch(arguments: argparse.Namespace) -> int:
    if arguments.recording and arguments.record:
        return refuse("watch", "--record: a recording is played; give one of the two options")
    return _run_until_interrupted("watch", _serve, arguments)


def _run_until_interrupted(
    command: str, command_body: Callable[[argparse.Namespace], int], arguments: argparse.Namespace
) -> int:
    """Run a command; return its exit code. An error is reported in one line."""
    try:
        return run_or_refuse(command, lambda: command_body(arguments))
    except OSError as error:
        sys.stdout.flush()  # raises again where it is the standard output that fails
        return refuse(command, error)
    except KeyboardInterrupt:
        return ENDED


# --- the page


def _serve(arguments: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415 -- here and below: not for --help

    with _Sources(arguments) as sources:
        asyncio.run(_run(arguments, sources))
    return ENDED


async def _run(arguments: argparse.Namespace, sources: "_Sources") -> None:
    import asyncio  # noqa: PLC0415
    from contextlib import AsyncExitStack  # noqa: PLC0415

    from functions.cli.private_file import write_private_file  # noqa: PLC0415
    from functions.cli.watch import page_files  # noqa: PLC0415
    from functions.cli.watch.broadcast import Broadcast, broadcasting  # noqa: PLC0415
    from functions.cli.watch.recording import Recording, read_recording  # noqa: PLC0415
    from functions.cli.watch.server import PageServer  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        source: Broadcast | Recording
        if arguments.recording:
            source = Recording(read_recording(arguments.recording), arguments.speed)
        else:
            live = sources.live(looks_back=True)
            source = Broadcast(live, sources.recorder(live))
            await stack.enter_async_context(broadcasting(source))
        if not page_files.is_built():
            sys.stderr.write("dovetail watch: building the page, once (half a minute) ...\n")
            page_files.build()
        server = PageServer(source, page_files.BUILT, arguments.port)
        address = await server.start()
        stack.push_async_callback(server.stop)
        if arguments.address_file:
            write_private_file(Path(arguments.address_file), f"{address}\n")
        sys.stdout.write(f"The page: {address}\nCtrl-C ends it.\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


class _Sources:
    """What the commands read from; stops what it started."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from contextlib import ExitStack  # noqa: PLC0415

        self._arguments = arguments
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def live(self, *, proves: bool = True, looks_back: bool = False) -> "LiveCluster":
        """Return the cluster, watched from now on, with or without its bound and the day before."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

        from functions.cli.kubeconfig import kubeconfig_of  # noqa: PLC0415
        from functions.cli.plan.inputs import read_catalog  # noqa: PLC0415
        from functions.cli.watch.cluster_watch import (  # noqa: PLC0415
            ClusterWatch,
            cluster_records,
            refuse_unknown_cluster,
        )
        from functions.cli.watch.live import LiveCluster  # noqa: PLC0415
        from functions.cli.watch.worker import proving_worker  # noqa: PLC0415

        arguments = self._arguments
        path = kubeconfig_of(arguments.kubeconfig)
        name = arguments.cluster or ""
        cluster = ClusterWatch(path, arguments.context)
        # A failure to reach the cluster is reported once, and ends the command.
        cluster.require_access()
        if name:
            refuse_unknown_cluster(name)
        live = LiveCluster(
            cluster,
            name or "cluster",
            lambda: cluster_records(name),
            read_catalog(arguments.catalog).instance_types,
            self._stack.enter_context(proving_worker() if proves else ThreadPoolExecutor(1)),
            selector=getattr(arguments, "node_selector", None),
        )
        live.start(proves=proves, looks_back=looks_back)
        self._stack.callback(live.stop)
        return live

    def recorder(self, live: "LiveCluster") -> Any:
        """Return a function that records each message, None if nothing is recorded."""
        if not self._arguments.record:
            return None
        import time  # noqa: PLC0415

        from functions.cli.watch.live import utc_now  # noqa: PLC0415
        from functions.cli.watch.recording import Recorder  # noqa: PLC0415

        file = Path(self._arguments.record).open("w", encoding="utf-8")  # noqa: SIM115 -- see below
        self._stack.enter_context(file)
        began = time.monotonic()
        return Recorder(file, lambda: time.monotonic() - began, live.decision, utc_now).record


# --- the terminal


def _show(arguments: argparse.Namespace) -> int:
    import shutil  # noqa: PLC0415
    import time  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live as Screen  # noqa: PLC0415

    from functions.cli.watch.keyboard import pressed_keys  # noqa: PLC0415
    from functions.cli.watch.top import recent_warnings, top_view  # noqa: PLC0415
    from functions.cli.watch.top_options import TopOptions  # noqa: PLC0415

    console = Console()
    if not console.is_terminal:
        # The width in COLUMNS, if it is set.
        console.width = shutil.get_terminal_size((_PIPED_COLUMNS, 24)).columns
    options = TopOptions(order=arguments.node_sort, extra_labels=arguments.extra_labels)
    with _Sources(arguments) as sources:
        # Free room of nodes that are not shown would make a bound wrong.
        live = sources.live(proves=not (arguments.lines or arguments.node_selector))
        if arguments.lines:
            _print_lines(live)
        if not console.is_terminal:
            ends = time.monotonic() + _SYNC_SECONDS
            while not live.is_synced and time.monotonic() < ends:
                time.sleep(_REFRESH_SECONDS)
            if not live.is_synced:
                raise UnavailableError(
                    f"nodes and pods were not read within {_SYNC_SECONDS:.0f} seconds: "
                    "is the way to the API server slow? dovetail top in a terminal waits longer"
                )
            ends = time.monotonic() + _BOUND_SECONDS
            while not live.is_complete and time.monotonic() < ends:
                time.sleep(_REFRESH_SECONDS)
            live.next_change()
            labels = live.node_labels()
            console.print(
                top_view(live.whole(), 10_000, console.width, labels=labels, options=options)
            )
            return ENDED
        with (
            recent_warnings() as warnings,
            pressed_keys() as next_key,
            Screen(console=console, screen=True, auto_refresh=False) as screen,
        ):
            key = ""
            while key != "q":
                options = options.after(key, console.height // 2)
                live.next_change()
                whole = live.whole()
                whole["notes"] = [*whole["notes"], *warnings()]
                view = top_view(
                    whole,
                    console.height,
                    console.width,
                    labels=live.node_labels(),
                    options=options,
                    keys=options.keys if sys.stdin.isatty() else "",
                )
                screen.update(view, refresh=True)
                key = next_key(_REFRESH_SECONDS)
    return ENDED


def _print_lines(live: "LiveCluster") -> None:
    """Print what there is, the last decisions, then each decision and removal as it comes."""
    import time  # noqa: PLC0415

    from functions.cli.watch.lines import DecisionLines, first_line  # noqa: PLC0415
    from functions.cli.watch.live import utc_now  # noqa: PLC0415

    lines = DecisionLines()
    is_told = False
    while True:
        live.next_change()
        if live.is_synced and not is_told:
            # Decisions may take a while to be read.
            sys.stdout.write(printable_text([first_line(live.whole(), live.server)]))
            sys.stdout.flush()
            is_told = True
        # In the order of time: decisions are read newest first.
        if live.is_current:
            sys.stdout.write(printable_text(lines.new_lines(live.whole(), utc_now())))
            sys.stdout.flush()
        time.sleep(_LINES_SECONDS)
