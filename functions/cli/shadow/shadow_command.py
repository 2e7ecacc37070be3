"""`dovetail shadow`: beside the autoscaler that runs, what Dovetail would have done and cost."""

import argparse
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from functions.cli.input_error import InputError
from functions.cli.kubeconfig import add_kubeconfig
from functions.cli.parser import Subparsers, add_command, add_list, add_settings, unwritable
from functions.cli.prices import add_prices, chosen_catalog, price_notes
from functions.cli.printable_text import printable_text
from functions.cli.run_command import run_or_refuse

if TYPE_CHECKING:
    from functions.cli.catalog_runtime import MadeCatalog
    from functions.cli.shadow.fleet import Observation
    from functions.cli.shadow.observer import ClusterObserver
    from functions.cli.shadow.record import ShadowRecord
    from functions.cli.shadow.simulation import ShadowRules
    from functions.cli.watch.cluster_watch import ClusterWatch
    from shared.model.kubernetes.nodes import Node
    from shared.ports import Clock

DONE: Final = 0
_REPORT: Final = "report"
_STATE: Final = "dovetail-shadow.db"
_OUTPUT: Final = "dovetail-shadow.html"
_STEP: Final = timedelta(seconds=10)
_TRY_AGAIN: Final = timedelta(seconds=0.25)
_MOST_TRIES: Final = 240
_UNITS: Final = {"m": 60, "h": 3600, "d": 86400}
_TEXT: Final = """\
Runs beside Karpenter, Cluster Autoscaler, node groups or EKS Auto Mode and says what Dovetail would
launch and remove, a line for each decision, and at the end what its fleet would have cost beside
what really ran: by day, by pool, purchase by purchase. It only reads, with your kubeconfig (get,
list and watch); it installs nothing, writes nothing in the cluster and needs no AWS credentials.

  dovetail shadow --for 7d                 a week; Ctrl-C ends it sooner, the same line continues
  dovetail shadow --live-prices            with today's prices of the Region, asked of AWS
  dovetail shadow --pool general           compare one pool, such as a NodePool or a node group
  dovetail shadow report                   the report of what is recorded so far, also meanwhile
  dovetail shadow report --output week.json

The record is a file that survives a crash at any moment. Times in which the command did not run are
gaps: they count on neither side, and the report shows them. How the fleet is simulated, and what
that leaves out: docs/shadow.md.
"""
_CODES: Final = """exit codes:
  0  the report is written
  2  bad input, or the cluster or AWS cannot be read: one line says what
"""


def mount_shadow(
    subparsers: Subparsers,
    connect: "Callable[[str, str | None], ClusterWatch] | None" = None,
    make: "Callable[[str], MadeCatalog] | None" = None,
    clock: "Clock | None" = None,
) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code.

    Args:
        connect: Returns the cluster of a kubeconfig file and a context; None for the real one.
        make: Returns the catalogue of a Region; None for AWS's.
        clock: None for the real one.
    """
    summary = "say beside a running autoscaler what Dovetail would do, and what it would cost"
    parser = add_command(subparsers, "shadow", summary, _TEXT, _CODES)
    parser.add_argument(
        "action", nargs="?", choices=(_REPORT,), help="write the report of what is recorded so far"
    )
    parser.add_argument("--state", metavar="FILE", default=_STATE, help=f"the record ({_STATE})")
    parser.add_argument(
        "--output", metavar="FILE", default=_OUTPUT, help=f"the report ({_OUTPUT}); or .json"
    )
    add_kubeconfig(parser)
    parser.add_argument(
        "--for",
        dest="lasts",
        type=_span,
        metavar="SPAN",
        help="end after so long, such as 7d, 12h or 30m (at Ctrl-C)",
    )
    add_list(
        parser,
        "--pool",
        metavar="NAME",
        help="compare this pool; may be repeated (the pools of Karpenter and EKS Auto Mode, or "
        "all node groups where there are none)",
    )
    add_prices(parser)
    add_settings(parser, "a setting of plans: see dovetail plan --help; may be repeated")
    parser.add_argument("--quiet", action="store_true", help="no line for each decision")
    parser.set_defaults(
        run=lambda arguments: run_or_refuse("shadow", lambda: _run(arguments, connect, make, clock))
    )


def _span(text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if number.isascii() and number.isdigit() and unit in _UNITS and len(number) < 6:
        return timedelta(seconds=int(number) * _UNITS[unit])
    raise argparse.ArgumentTypeError(f"{text}: give a number with m, h or d, such as 7d")


def _run(
    arguments: argparse.Namespace,
    connect: "Callable[[str, str | None], ClusterWatch] | None",
    make: "Callable[[str], MadeCatalog] | None",
    clock: "Clock | None",
) -> int:
    # Imported when it runs: `dovetail --help` needs none of it.
    from functions.cli.shadow.record import ShadowRecord  # noqa: PLC0415

    if why := unwritable("--output", arguments.output):
        raise InputError(why)
    if arguments.action == _REPORT:
        with ShadowRecord(Path(arguments.state), make=False) as record:
            return _write_report(arguments.output, record)
    return _watch(arguments, connect, make, clock)


def _watch(
    arguments: argparse.Namespace,
    connect: "Callable[[str, str | None], ClusterWatch] | None",
    make: "Callable[[str], MadeCatalog] | None",
    clock: "Clock | None",
) -> int:
    from functions.cli.kubeconfig import kubeconfig_of  # noqa: PLC0415
    from functions.cli.plan.packing_settings import changed_settings, with_settings  # noqa: PLC0415
    from functions.cli.plan.reading.running_cluster import refuse_another_region  # noqa: PLC0415
    from functions.cli.shadow.observer import ClusterObserver  # noqa: PLC0415
    from functions.cli.shadow.record import About, ShadowRecord  # noqa: PLC0415
    from functions.cli.shadow.shadow_page import continued_text  # noqa: PLC0415
    from functions.cli.shadow.simulation import ShadowRules  # noqa: PLC0415
    from functions.cli.watch.cluster_watch import ClusterWatch  # noqa: PLC0415
    from shared.instance_types.summary import summarize  # noqa: PLC0415
    from shared.packing.problem import PackingSettings  # noqa: PLC0415
    from shared.runtime.system import SystemClock  # noqa: PLC0415

    packing = with_settings(PackingSettings(), arguments.settings)
    cluster = (connect or ClusterWatch)(kubeconfig_of(arguments.kubeconfig), arguments.context)
    cluster.require_access()
    clock = clock or SystemClock()
    with ExitStack() as stack:
        record = stack.enter_context(ShadowRecord(Path(arguments.state), make=True))
        observer = ClusterObserver(cluster, clock.now)
        stack.callback(observer.stop)
        observer.start()
        first = _first_observation(observer, clock)
        catalog = chosen_catalog(arguments, _region_of(first.nodes), make)
        rules = ShadowRules(
            instance_types=catalog.instance_types, pools=tuple(arguments.pool), packing=packing
        )
        refuse_another_region(first.nodes, catalog)
        _refuse_unknown_pools(arguments.pool, observer, first, record)
        record.begin(
            About(
                cluster=cluster.url,
                prices=summarize(catalog).line(clock.now().date()).removeprefix("prices "),
                settings=tuple(changed_settings(packing, PackingSettings())),
            )
        )
        fleet, began_at = record.fleet(), record.began_at()
        if fleet.progress is not None and began_at is not None:
            text = continued_text(began_at, fleet.progress, fleet.real, first, rules.longest_pause)
            sys.stderr.write(f"dovetail shadow: {text}\n")
        recording = _Recording(observer, record, rules, quiet=arguments.quiet)
        recording.tell_notes(price_notes(arguments))
        ends = None if arguments.lasts is None else clock.now() + arguments.lasts
        try:
            recording.observe()
            while ends is None or clock.now() < ends:
                clock.sleep(_STEP)
                recording.observe()
        except KeyboardInterrupt:
            sys.stderr.write("dovetail shadow: stopped: the same command continues the record\n")
        return _write_report(arguments.output, record)


class _Recording:
    """Observes a cluster again and again, and says what is new."""

    def __init__(
        self,
        observer: "ClusterObserver",
        record: "ShadowRecord",
        rules: "ShadowRules",
        *,
        quiet: bool,
    ) -> None:
        self._observer = observer
        self._record = record
        self._rules = rules
        self._quiet = quiet
        self._fleet = record.fleet()
        self._told: set[str] = set()

    def observe(self) -> None:
        """Take one step, unless the cluster cannot be observed now."""
        from functions.cli.shadow.step import step  # noqa: PLC0415

        observed = self._observer.observe()
        if observed is None:
            return
        made = step(self._fleet, observed, self._rules)
        self._record.add(self._fleet, made)
        self._fleet = made.fleet
        self.tell_notes((*made.notes, *self._observer.notes.values()))
        if not self._quiet:
            lines = (f"{line.at:%Y-%m-%d %H:%M:%S} {line.text}" for line in made.decisions)
            sys.stdout.write(printable_text(lines))
            sys.stdout.flush()

    def tell_notes(self, notes: Iterable[str]) -> None:
        """Write and record what is left out or assumed, each note once."""
        fresh = [note for note in notes if note not in self._told]
        if not fresh:
            return
        self._told.update(fresh)
        self._record.note(fresh)
        sys.stderr.write(printable_text(f"note: {note}" for note in fresh))
        sys.stderr.flush()


def _first_observation(observer: "ClusterObserver", clock: "Clock") -> "Observation":
    """Return the cluster as soon as it has been read.

    Raises:
        UnavailableError: If that takes longer than a minute.
        InputError: If it has no node.
    """
    from shared.model.errors import UnavailableError  # noqa: PLC0415

    for _ in range(_MOST_TRIES):
        found = observer.observe()
        if found is not None and found.nodes:
            return found
        if found is not None:
            raise InputError("the cluster has no node: start once it has some")
        clock.sleep(_TRY_AGAIN)
    seconds = (_MOST_TRIES * _TRY_AGAIN).total_seconds()
    raise UnavailableError(
        f"nodes and pods were not read within {seconds:.0f} seconds: is the way to the API server "
        "slow?"
    )


def _refuse_unknown_pools(
    names: "Iterable[str]",
    observer: "ClusterObserver",
    first: "Observation",
    record: "ShadowRecord",
) -> None:
    """Refuse names that no pool has or had, unless it is not known which pools there are."""
    from functions.cli.shadow.compared_pools import refuse_unknown_pools  # noqa: PLC0415
    from functions.cli.shadow.observer import NODE_POOLS  # noqa: PLC0415

    if NODE_POOLS not in observer.notes:
        refuse_unknown_pools(names, first, record.fleet().shown.values())


def _region_of(nodes: "Iterable[Node]") -> str:
    from shared.model import labels as keys  # noqa: PLC0415

    return next((node.labels[keys.REGION] for node in nodes if keys.REGION in node.labels), "")


def _write_report(output: str, record: "ShadowRecord") -> int:
    import json  # noqa: PLC0415

    from functions.cli.plan.inputs import write_bytes  # noqa: PLC0415
    from functions.cli.shadow.figures import json_figures, shadow_figures  # noqa: PLC0415
    from functions.cli.shadow.shadow_page import shadow_page, summary_lines  # noqa: PLC0415

    recorded = record.recorded()
    figures = shadow_figures(recorded)
    if Path(output).suffix == ".json":
        text = json.dumps(json_figures(recorded, figures), indent=2) + "\n"
    else:
        text = shadow_page(recorded, figures)
    write_bytes(output, text.encode())
    sys.stdout.write(printable_text(summary_lines(recorded, figures)))
    sys.stdout.write(f"written to {output}\n")
    return DONE
