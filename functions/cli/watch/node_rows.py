"""The nodes of a cluster as rows of a terminal: what has no room goes, names and types never."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.table import Table
from rich.text import Text

from functions.cli.printable_text import printable
from functions.cli.watch.top_options import TopOptions, used_share
from functions.cli.watch.view import GOING, LAUNCHING, NOT_READY
from shared.model.dollars_and_counts import dollars

View = Mapping[str, Any]
Labels = Mapping[str, Mapping[str, str]]

# Most and fewest cells of a bar; with less space there is only the percentage.
_BAR: Final = 18
_LEAST_BAR: Final = 4
_PERCENT: Final = 6
# This many characters of a state are shown before bars get space, and of a phase always.
_STATE: Final = 24
_PHASE: Final = 11
_TITLES: Final = ("node", "type", "owner", "zone", "bought", "$/h", "state", "pods")
# What goes first where there is no room, after the domain of names and after the bars.
_LEAST_NEEDED: Final = ("zone", "owner", "bought")
_NUMBERS: Final = frozenset({"$/h", "pods"})
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


def node_rows(
    nodes: Sequence[View], labels: Labels, options: TopOptions, rows: int, width: int
) -> Table:
    """Return so many nodes as a table of so many columns of characters."""
    ordered = options.order.sort(nodes, labels)
    first = max(0, min(options.first, len(ordered) - rows))
    shown = ordered[first : first + rows]
    cells = [_cells(node, labels.get(node["name"], {}), options.extra_labels) for node in shown]
    titles = (*_TITLES, *options.extra_labels)
    widths = _widths(cells, titles)
    if _needed(widths) + _STATE + 2 * _BAR > width:
        for row in cells:
            row["node"] = _without_domain(row["node"])
        widths = _widths(cells, titles)
    for title in _LEAST_NEEDED:
        if _needed(widths) > width:
            del widths[title]
    # With room to spare, states get what they need, then bars.
    free = width - _needed(widths) - (min(_longest(cells, "state"), _STATE) - widths["state"])
    bar = max(0, min(_BAR, free // 2))
    bar = bar if bar >= _LEAST_BAR else 0

    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False, expand=True)
    for title in (*widths, "cpu", "memory"):
        table.add_column(
            plain_text(_head(title)),
            no_wrap=True,
            # What a node waits for is cut if space is short: its state stays.
            overflow="ellipsis" if title == "state" else "fold",
            justify="right" if title in _NUMBERS else "left",
            ratio=1 if title == "state" else None,
            min_width=widths.get(title),
        )
    colours = workload_colours(nodes)
    for node, row in zip(shown, cells, strict=True):
        bars = (_bar(node, resource, colours, bar) for resource in ("cpu", "memory"))
        table.add_row(*(row[title] for title in widths), *bars)
    if len(ordered) > len(shown):
        below = len(ordered) - first - len(shown)
        table.add_row(f"… {first} above, {below} below" if first else f"… and {below} more")
    return table


def _cells(node: View, labels: Mapping[str, str], extra: Sequence[str]) -> dict[str, Text]:
    pods = sum(share["count"] for share in node["pods"])
    return {
        "node": plain_text(node["name"]),
        "type": plain_text(node["type"]),
        "owner": plain_text(node["owner"] or "none", "" if node["ours"] else "dim"),
        "zone": plain_text(node["zone"]),
        "bought": plain_text(node["capacity_type"]),
        "$/h": Text("?" if node["price"] is None else dollars(node["price"]).removeprefix("$")),
        "state": plain_text(_state(node), _PHASE_STYLE[node["phase"]]),
        "pods": Text(f"{pods}/{node['room']}"),
        **{key: plain_text(labels.get(key, "")) for key in extra},
    }


def _head(title: str) -> str:
    """Return the head of a column: of a label its name without its domain."""
    return title if title in _TITLES else title.rpartition("/")[2]


def _longest(cells: Sequence[Mapping[str, Text]], title: str) -> int:
    return max((row[title].cell_len for row in cells), default=0)


def _widths(cells: Sequence[Mapping[str, Text]], titles: Sequence[str]) -> dict[str, int]:
    """Return how wide each column must be; a state may be cut after its phase."""
    widths = {title: max(len(_head(title)), _longest(cells, title)) for title in titles}
    return {**widths, "state": min(widths["state"], _PHASE)}


def _needed(widths: Mapping[str, int]) -> int:
    """Return the width of a table without bars: one space between two columns."""
    return sum(widths.values()) + 2 * _PERCENT + len(widths) + 1


def _without_domain(name: Text) -> Text:
    """Return the name of a node as EC2's private DNS begins it, another name as it is."""
    host, _, domain = name.plain.partition(".")
    return Text(host) if domain.endswith("internal") else name


def _state(node: View) -> str:
    phase = str(node["phase"])
    if node["reason"]:
        held = f"; held: {node['blocked']}" if node["blocked"] else ""
        return f"{phase}: {node['reason']}{held}"
    return f"{phase}, waits for {node['waits_for']}" if node["waits_for"] else phase


def workload_colours(nodes: Sequence[View]) -> dict[str, str]:
    """Return a colour for each workload; those with the most pods differ."""
    sizes: dict[str, int] = {}
    for node in nodes:
        for share in node["pods"]:
            sizes[share["workload"]] = sizes.get(share["workload"], 0) + share["count"]
    ordered = sorted(sizes, key=lambda name: (-sizes[name], name))
    return {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(ordered)}


def _bar(node: View, resource: str, colours: Mapping[str, str], width: int) -> Text:
    """Return how full a node is, by workload: so many cells and a percentage."""
    allocatable = node[resource]
    bar, drawn, used = Text(), 0, 0
    for share in node["pods"]:
        used += share[resource]
        end = min(width, round(width * used / allocatable)) if allocatable else 0
        bar.append("█" * (end - drawn), style=colours[share["workload"]])
        drawn = max(drawn, end)
    bar.append("░" * (width - drawn), style="dim")
    bar.append(f" {round(100 * used_share(node, resource)):3d} %")
    return bar


def plain_text(text: str, style: str = "") -> Text:
    """Return text as it is: text from a cluster is neither markup nor a terminal command."""
    return Text(printable(text), style=style)
