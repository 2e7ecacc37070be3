"""One cluster as tables for a terminal: what the page shows, drawn with rich."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from functions.cli.watch.lines import decision_gap, planned_nodes
from functions.cli.watch.node_rows import Labels, node_rows, plain_text
from functions.cli.watch.outcome import outcome_text
from functions.cli.watch.top_options import TopOptions
from shared.model.dollars_and_counts import counted, dollars, pods_that_wait

# A failed watch is retried every half a minute at least: its warning is shown until then.
_WARNING_SECONDS: Final = 40.0
DEFAULTS: Final = TopOptions()
NO_LABELS: Final[Labels] = {}
# On a terminal with fewer columns a decision says what came of it first.
_NARROW: Final = 110
_WAITING_ROWS: Final = 6
_DECISION_ROWS: Final = 4
_SPARKS: Final = " ▁▂▃▄▅▆▇█"
# Lines of panels, headings and totals around the rows of nodes.
_FRAME: Final = 9


def top_view(
    whole: Mapping[str, Any],
    rows: int,
    columns: int,
    *,
    labels: Labels = NO_LABELS,
    options: TopOptions = DEFAULTS,
    keys: str = "",
) -> RenderableType:
    """Return the cluster for a screen of so many rows and columns.

    Args:
        whole: As `LiveCluster.whole` returns it.
        rows: Lines of the screen; nodes that do not fit are counted.
        labels: Of each node, by its name.
        keys: The keys that work; empty where none does.
    """
    notes = [plain_text(note, "dim") for note in whole["notes"]]
    if not whole["synced"]:
        return Group(Text("reading nodes and pods …"), *notes)
    parts: list[RenderableType] = [_head(whole)]
    waiting = _waiting(whole["waiting"])
    decisions = _decisions(whole["decisions"][:_DECISION_ROWS], columns)
    taken = sum(part.row_count + 3 for part in (waiting, decisions) if part is not None)
    if keys:
        notes.append(Text(keys, style="dim"))
    node_lines = max(rows - _FRAME - taken - len(notes), 3)
    parts.append(node_rows(whole["nodes"], labels, options, node_lines, columns))
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
    bound = f"{dollars(least['bound'])}/h" if least else "–"
    head.append(f"   bound {bound}", style="green")
    if least and least["bound"] and totals["owned"]:
        over = 100 * (totals["owned_price"] - least["bound"]) / least["bound"]
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


def _decisions(decisions: Sequence[Mapping[str, Any]], columns: int) -> Table | None:
    if not decisions:
        return None
    table = Table(box=None, padding=(0, 1), show_header=False)
    narrow = columns < _NARROW
    for can_be_cut in (False, True) if narrow else (False, True, True, False):
        table.add_column(no_wrap=not can_be_cut)
    for decision in decisions:
        planned, price = planned_nodes(decision), dollars(decision["cost"])
        came = outcome_text(decision)
        cost = f"{came and 'planned '}{price}/h, {decision_gap(decision)}" if planned else ""
        cause = plain_text(decision["cause"])
        did = plain_text(came or planned or "plans no node")
        if narrow:
            did.append(f"; {cause}" if not cost else f"; {cost}")
        for cut in (cause, did):
            cut.no_wrap, cut.overflow = True, "ellipsis"
        table.add_row(decision["at"][11:19], *([did] if narrow else [cause, did, cost]))
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
