"""What the person at the terminal sees: stages, nodes filling, and the summary."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from infra.local.cluster_simulator.rules.amounts import amounts
from infra.local.demo.observer import Observer
from infra.local.demo.prices import price_of
from infra.local.demo.timeline import NodeTrack, PodTrack
from shared.model.dollars_and_counts import counted, dollars, hourly

_ROWS = 18
# With fewer columns of the terminal there are no bars: names, types and states are never cut.
_COLUMNS_WITH_BARS = 104
_BAR = 24
_TITLES = ("node", "type", "bought", "$/h", "state", "pods", "filled")


class Screen:
    """A live view of the cluster while a scenario is played."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stage = ""
        self._observer: Observer | None = None
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def say(self, what: str) -> None:
        """Print one line: what is being done, or what was decided."""
        say(self._console, what)

    def begin(self, step: str) -> None:
        """Print a step's title, and show it above the nodes."""
        self._stage = step
        self.say(step)

    def watch(self, observer: Observer) -> None:
        self._observer = observer

    def refresh(self) -> None:
        if self._console.is_terminal and self._observer is not None:
            self._live.update(self._picture(self._observer))

    def _picture(self, observer: Observer) -> Group:
        with observer.lock:
            pods = observer.timeline.living_pods({})
            nodes = observer.timeline.living_nodes()
        running = sum(1 for pod_track in pods if pod_track.running is not None)
        bound = sum(1 for pod_track in pods if pod_track.bound is not None)
        price = hourly(sum(price_of(node.labels) for node in nodes))
        head = Text(
            f"{observer.now():6.1f} s   pods: {len(pods)}, bound {bound}, running {running}   "
            f"nodes: {len(nodes)}, {price}"
        )
        on_node: dict[str, list[PodTrack]] = {}
        for pod in pods:
            on_node.setdefault(pod.node, []).append(pod)
        table = node_table(nodes, on_node, observer.now(), self._console.width)
        return Group(Panel(Group(head, table), title=self._stage, title_align="left"))


def node_table(
    nodes: Sequence[NodeTrack], on_node: Mapping[str, Sequence[PodTrack]], now: float, columns: int
) -> Table:
    """Return nodes and what fills them, for a terminal of so many columns."""
    table = Table(expand=False, box=None, padding=(0, 1, 0, 0))
    bars = columns >= _COLUMNS_WITH_BARS
    for title in (*_TITLES, *([""] if bars else [])):
        table.add_column(title, no_wrap=True)
    for node in nodes[:_ROWS]:
        here = on_node.get(node.name, [])
        filled = fill_of(node, here)
        table.add_row(
            node.name.partition(".")[0],
            node.labels.get("node.kubernetes.io/instance-type", ""),
            node.labels.get("karpenter.sh/capacity-type", "not ours"),
            dollars(price_of(node.labels)).removeprefix("$"),
            state_of(node, now),
            str(len(here)),
            f"{filled:.0%}",
            *([ProgressBar(total=1, completed=filled, width=_BAR)] if bars else []),
        )
    if len(nodes) > _ROWS:
        table.add_row(f"… and {len(nodes) - _ROWS} more")
    return table


def fill_of(node: NodeTrack, pods: Sequence[PodTrack]) -> float:
    """Return how full a node is: the share of its cpu or memory that is requested, the larger."""
    room = amounts(node.allocatable)
    return max(
        (
            sum(pod.requests.get(name, 0) for pod in pods) / room[name]
            for name in ("cpu", "memory")
            if room.get(name)
        ),
        default=0.0,
    )


def state_of(node: NodeTrack, now: float) -> str:
    """Return how far a node has come, in the words of the glossary, and since when it boots."""
    if node.deleting is not None:
        return "draining"
    if node.cordoned is not None:
        return "cordoned"
    if node.initialized is not None:
        return "initialized"
    if node.ready is not None:
        return "registered"
    return f"launched, {now - (node.created or now):.0f} s"


def say(console: Console, what: str) -> None:
    """Print one line for people; it is wrapped in a terminal alone."""
    console.print(f"[bold]•[/bold] {escape(what)}", soft_wrap=not console.is_terminal)


def print_summary(console: Console, report: dict[str, Any]) -> None:
    table = Table(title=f"{report['scenario']}: what came of it", title_justify="left", box=None)
    table.add_column("", style="bold")
    table.add_column("")
    for kind, counts in (("types", "instance_types"), ("capacity types", "capacity_types")):
        text = ", ".join(f"{count} × {name}" for name, count in report[counts].items())
        table.add_row(kind, text or "none")
    table.add_row("pods that ran", str(report["pods"]))
    table.add_row("nodes launched", str(len(report["nodes"])))
    table.add_row("after each step", _after_each_step(report["steps"]))
    table.add_row(
        "bought in all", f"${report['dollars_per_hour_bought']:.4f}/h, replacements included"
    )
    table.add_row(
        "plans",
        f"{report['plans']} for waiting pods, ${report['plan_dollars_per_hour']:.4f}/h; no plan "
        f"can cost less than ${report['lower_bound_dollars_per_hour']:.4f}/h: at most "
        f"{report['gap_percent']:.1f} % above that; {report['changes']} that replace nodes",
    )
    stages = report["seconds_by_stage"]
    table.add_row(
        "seconds", " → ".join(f"{name} {'?' if at is None else at}" for name, at in stages.items())
    )
    table.add_row("prices", report["prices"])
    plain = not console.is_terminal
    console.print(table, soft_wrap=plain)
    for step in report["steps"]:
        mark = "[red]✗[/red]" if step["failures"] else "[green]✓[/green]"
        title = escape(step["title"])
        console.print(f"{mark} {title} ({step['seconds']} s): {_after(step)}", soft_wrap=plain)
        for failure in step["failures"]:
            why = escape(failure["why"])
            console.print(f"    [red]{failure['expectation']}[/red]: {why}", soft_wrap=plain)
    if report["survived"]:
        passed = report["passed"]
        console.print("\n[bold]Survived[/bold]:" if passed else "\n[bold]Went wrong[/bold]:")
        for line in report["survived"]:
            console.print(f"  {escape(line)}", soft_wrap=plain)


def _after_each_step(steps: Sequence[dict[str, Any]]) -> str:
    """Return what stands after each step, and how far below the most what is left at the end is."""
    spent = [step["dollars_per_hour"] for step in steps] or [0.0]
    told = " → ".join(map(_after, steps))
    less = max(spent) - spent[-1]
    return f"{told}: ${less:.4f}/h below the peak" if less > 0 and spent[-1] > 0 else told


def _after(step: dict[str, Any]) -> str:
    return f"{counted(step['nodes'], 'node')}, ${step['dollars_per_hour']:.4f}/h"
