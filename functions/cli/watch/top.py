"""One cluster as tables for a terminal: what the page shows, drawn with rich."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from functions.cli.printable_text import printable
from functions.cli.watch.lines import decision_gap, planned_nodes
from functions.cli.watch.outcome import outcome_text
from functions.cli.watch.view import GOING, LAUNCHING, NOT_READY
from shared.model.dollars_and_counts import counted, dollars, pods_that_wait

_GIB: Final = 2**30
# Most and fewest cells of a bar; with less space there is only the percentage.
_BAR: Final = 18
_LEAST_BAR: Final = 4
_PERCENT: Final = 6
# On a terminal with fewer columns there is less padding, and no zone.
_WIDE: Final = 110
# This many characters of a state are shown before bars get space.
_STATE: Final = 24
_TITLES: Final = ("node", "type", "zone", "bought", "$/h", "state", "pods")
# A failed watch is retried every half a minute at least: its warning is shown until then.
_WARNING_SECONDS: Final = 40.0
_WAITING_ROWS: Final = 6
_DECISION_ROWS: Final = 4
_SPARKS: Final = " ▁▂▃▄▅▆▇█"
# Lines of panels, headings and totals around the rows of nodes.
_FRAME: Final = 9
# Distinct also on a terminal with sixteen colours.
_COLOURS: Final = (
    *("blue", "dark_orange", "green", "magenta", "cyan", "yellow", "red", "bright_blue"),
    *("bright_green", "bright_magenta", "bright_cyan", "bright_red"),
)
_PHASE_STYLE: Final[Mapping[str, str]] = {
    LAUNCHING: "dim",
    "launched": "cyan",
    "registered": "cyan",
    "initialized": "green",
    GOING: "yellow",
    NOT_READY: "red",
}
_ORDER: Final = (NOT_READY, GOING, LAUNCHING, "launched", "registered", "initialized")


def top_view(whole: Mapping[str, Any], rows: int, columns: int) -> RenderableType:
    """Return the cluster for a screen of so many rows and columns.

    Args:
        whole: As `LiveCluster.whole` returns it.
        rows: Lines of the screen; nodes that do not fit are counted.
    """
    notes = [plain_text(note, "dim") for note in whole["notes"]]
    if not whole["synced"]:
        return Group(Text("reading nodes and pods …"), *notes)
    parts: list[RenderableType] = [_head(whole)]
    waiting = _waiting(whole["waiting"])
    decisions = _decisions(whole["decisions"][:_DECISION_ROWS])
    taken = sum(part.row_count + 3 for part in (waiting, decisions) if part is not None)
    node_rows = max(rows - _FRAME - taken - len(notes), 3)
    parts.append(_nodes(whole["nodes"], node_rows, columns))
    if waiting is not None:
        title = pods_that_wait(whole["totals"]["waiting"])
        parts.append(Panel(waiting, title=title, title_align="left", border_style="yellow"))
    if decisions is not None:
        parts.append(Panel(decisions, title="last decisions", title_align="left"))
    return Group(*parts, *notes)


def _head(whole: Mapping[str, Any]) -> Text:
    totals, least = whole["totals"], whole["least"]
    head = Text()
    head.append_text(plain_text(f"{whole['cluster']}  ", "bold"))
    head.append(f"{counted(totals['nodes'], 'node')}")
    for name in ("coming", "going"):
        if totals[name]:
            head.append(f", {totals[name]} {name}", style="yellow" if name == "going" else "cyan")
    head.append(f"   {counted(totals['pods'], 'pod')}")
    if totals["waiting"]:
        head.append(f", {totals['waiting']} waiting", style="yellow")
    head.append(f"   {dollars(totals['price'])}/h", style="bold")
    if totals["unpriced"]:
        head.append(f" and {counted(totals['unpriced'], 'node')} of unknown price", style="dim")
    if least is not None:
        head.append(f"   bound {dollars(least['bound'])}/h", style="green")
        owned = totals["owned_price"]
        if least["bound"]:
            over = 100 * (owned - least["bound"]) / least["bound"]
            head.append(f" ({over:+.1f} % on {counted(totals['owned'], 'node')} of Dovetail)")
    head.append(f"   {sparkline([point[1] for point in whole['history']], 24)}", style="blue")
    return head


def sparkline(values: Sequence[int], width: int) -> str:
    """Return the last values as a line of bars from zero to their largest."""
    shown = values[-width:]
    most = max(shown, default=0)
    if not most:
        return ""
    last = len(_SPARKS) - 1
    return "".join(_SPARKS[round(last * value / most)] for value in shown)


def _nodes(nodes: Sequence[Mapping[str, Any]], rows: int, width: int) -> Table:
    ordered = sorted(nodes, key=lambda node: (_ORDER.index(node["phase"]), node["name"]))
    narrow = width < _WIDE
    titles = [title for title in _TITLES if not (narrow and title == "zone")]
    cells = [_cells(node, narrow=narrow) for node in ordered[:rows]]
    longest = {
        title: max([len(title), *(cell.cell_len for row in cells if (cell := row.get(title)))])
        for title in titles
    }
    longest["state"] = min(longest["state"], _STATE)
    # One space between two columns, and one more as padding if there is space for it.
    free = width - sum(longest.values()) - 2 * (len(longest) + 2) - 2 * _PERCENT
    bar = max(0, min(_BAR, free // 2))
    bar = bar if bar >= _LEAST_BAR else 0

    table = Table(
        box=box.SIMPLE_HEAD,
        padding=0 if narrow else (0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        expand=True,
    )
    for title in (*titles, "cpu", "memory"):
        # Only names and states are truncated if space is short: their start tells the most.
        table.add_column(
            title,
            no_wrap=title not in ("node", "state"),
            justify="right" if title in ("$/h", "pods") else "left",
            ratio=1 if title == "state" else None,
        )
    colours = workload_colours(nodes)
    for node, row in zip(ordered, cells, strict=False):
        bars = (_bar(node, resource, colours, bar) for resource in ("cpu", "memory"))
        table.add_row(*(row[title] for title in titles), *bars)
    if len(ordered) > rows:
        table.add_row(f"… and {len(ordered) - rows} more")
    return table


def _cells(node: Mapping[str, Any], *, narrow: bool) -> dict[str, Text]:
    pods = sum(share["count"] for share in node["pods"])
    found = {
        "node": plain_text(node["name"]),
        "type": plain_text(node["type"]),
        "zone": plain_text(node["zone"]),
        "bought": plain_text(node["capacity_type"]),
        "$/h": Text("?" if node["price"] is None else dollars(node["price"]).removeprefix("$")),
        "state": plain_text(_state(node), _PHASE_STYLE[node["phase"]]),
        "pods": Text(f"{pods}/{node['room']}"),
    }
    if not node["owner"]:
        found["bought"] = Text("other" if narrow else "not by Dovetail")
    for title in ("node", "state"):
        found[title].no_wrap, found[title].overflow = True, "ellipsis"
    return found


def _state(node: Mapping[str, Any]) -> str:
    phase = str(node["phase"])
    if node["reason"]:
        held = f"; held: {node['blocked']}" if node["blocked"] else ""
        return f"{phase}: {node['reason']}{held}"
    return f"{phase}, waits for {node['waits_for']}" if node["waits_for"] else phase


def workload_colours(nodes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return a colour for each workload; those with the most pods differ."""
    sizes: dict[str, int] = {}
    for node in nodes:
        for share in node["pods"]:
            sizes[share["workload"]] = sizes.get(share["workload"], 0) + share["count"]
    ordered = sorted(sizes, key=lambda name: (-sizes[name], name))
    return {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(ordered)}


def _bar(node: Mapping[str, Any], resource: str, colours: Mapping[str, str], width: int) -> Text:
    """Return how full a node is, by workload: so many cells and a percentage."""
    allocatable = node[resource]
    bar, drawn, used = Text(), 0, 0
    for share in node["pods"]:
        used += share[resource]
        end = min(width, round(width * used / allocatable)) if allocatable else 0
        bar.append("█" * (end - drawn), style=colours[share["workload"]])
        drawn = max(drawn, end)
    bar.append("░" * (width - drawn), style="dim")
    bar.append(f" {round(100 * used / allocatable) if allocatable else 0:3d} %")
    return bar


def _waiting(groups: Sequence[Mapping[str, Any]]) -> Table | None:
    if not groups:
        return None
    table = Table(box=None, padding=(0, 1), show_header=False, expand=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="ellipsis", no_wrap=True)
    for group in groups[:_WAITING_ROWS]:
        table.add_row(
            f"{group['count']} ×", plain_text(group["workload"]), plain_text(group["reason"])
        )
    if len(groups) > _WAITING_ROWS:
        table.add_row("", f"… and {len(groups) - _WAITING_ROWS} more groups", "")
    return table


def _decisions(decisions: Sequence[Mapping[str, Any]]) -> Table | None:
    if not decisions:
        return None
    table = Table(box=None, padding=(0, 1), show_header=False)
    for can_be_cut in (False, True, True, False):
        table.add_column(no_wrap=not can_be_cut)
    for decision in decisions:
        planned, price = planned_nodes(decision), dollars(decision["cost"])
        came = outcome_text(decision)
        cost = f"{came and 'planned '}{price}/h, {decision_gap(decision)}" if planned else ""
        cause = plain_text(decision["cause"])
        did = plain_text(came or planned or "plans no node")
        for cut in (cause, did):
            cut.no_wrap, cut.overflow = True, "ellipsis"
        table.add_row(decision["at"][11:19], cause, did, cost)
    return table


@contextmanager
def recent_warnings(
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[], list[str]]]:
    """Yield a function that returns the last warning of the log while it is recent.

    No warning is printed.

    Args:
        clock: Seconds, monotonic.
    """
    last: list[tuple[float, str]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            last[:] = [(clock(), record.getMessage())]

    kept = Kept(logging.WARNING)
    logging.root.addHandler(kept)
    try:
        yield lambda: [message for at, message in last if clock() - at < _WARNING_SECONDS]
    finally:
        logging.root.removeHandler(kept)


def plain_text(text: str, style: str = "") -> Text:
    """Return text as it is: text from a cluster is neither markup nor a terminal command."""
    return Text(printable(text), style=style)
