"""Parts of a page: its frame, tables, bars, and the nodes as tiles."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from msgspec import Struct

from functions.cli.report.price_text import hourly_price_text, resource_percent
from functions.cli.report.style import STYLE
from shared.model.dollars_and_counts import counted
from shared.model.resources import CPU, MEMORY
from shared.provisioning.savings.inventory import FilledNode

_TILES: Final = 400


def whole_page(title: str, parts: Iterable[str]) -> str:
    """Return a page as HTML that fetches nothing.

    Args:
        parts: HTML.
    """
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def fact(figure: str, text: str, *, good: bool = False) -> str:
    """Return one figure in large print, with what it says."""
    kind = "fact good" if good else "fact"
    return f'<div class="{kind}"><b>{escape(figure)}</b>{escape(text)}</div>'


def bullet_list(lines: Iterable[str]) -> str:
    """Return lines of text as a list."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


class TableCell(Struct, frozen=True, kw_only=True):
    """One cell of a table.

    Attributes:
        text: Plain text, escaped here; not shown if there is `html`.
        below: A line in small print.
        kind: CSS classes: `n` for a number, with `good` or `bad`; `f` for how full something is.
    """

    text: str = ""
    below: str = ""
    html: str = ""
    kind: str = ""


def number(text: str, *, saves: int = 0) -> TableCell:
    """Return a cell with a number; green if it saves something, red if it costs more."""
    css_class = " good" if saves > 0 else " bad" if saves < 0 else ""
    return TableCell(text=text, kind=f"n{css_class}")


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[TableCell]],
    last: Sequence[TableCell] = (),
) -> str:
    """Return a table; the first cell of each row names it.

    Args:
        headings: Those that begin with `>` are aligned to the right.
        last: The row of sums.
    """
    head = "".join(map(_heading, headings))
    labels = [text.removeprefix(">") for text in headings]
    body = "".join(_row(row, labels) for row in rows)
    foot = f"<tfoot>{_row(last, labels)}</tfoot>" if last else ""
    told = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{told}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table></div>"
    )


def _heading(text: str) -> str:
    kind = ' class="n"' if text.startswith(">") else ""
    return f'<th scope="col"{kind}>{escape(text.removeprefix(">"))}</th>'


def _row(cells: Sequence[TableCell], labels: Sequence[str]) -> str:
    first, *others = cells
    row = "".join(map(_cell, others, labels[1:]))
    return f'<tr><th scope="row">{_inside(first)}</th>{row}</tr>'


def _cell(cell: TableCell, label: str) -> str:
    """Return a cell; it carries its heading for narrow screens, which show no head."""
    kind = f' class="{cell.kind}"' if cell.kind else ""
    named = f' data-label="{escape(label, quote=True)}"' if label else ""
    return f"<td{kind}{named}>{_inside(cell)}</td>"


def _inside(cell: TableCell) -> str:
    below = f"<small>{escape(cell.below)}</small>" if cell.below else ""
    return (cell.html or escape(cell.text)) + below


def price_bar(micros: int, longest: int, bound: int | None, *, now: bool) -> TableCell:
    """Return a bar for a price, with a mark at its lower bound."""
    mark = "" if bound is None else f'<u style="left:{_part(bound, longest)}%"></u>'
    kind = ' class="now"' if now else ""
    return TableCell(
        html=f'<span class="bar"><i{kind} style="width:{_part(micros, longest)}%"></i>{mark}</span>'
    )


def fill_cell(nodes: Iterable[FilledNode], name: str) -> TableCell:
    """Return how full the nodes are of a resource, as a bar and a number."""
    share = resource_percent(nodes, name)
    return TableCell(html=f"{_fill_bar(share, name)}{share} %", kind="f")


def node_tiles(title: str, nodes: Sequence[FilledNode]) -> str:
    """Return the nodes as tiles, each with how full it is."""
    tiles = "".join(map(_tile, nodes[:_TILES]))
    more = len(nodes) - _TILES
    left = f" {more:,} more are not drawn." if more > 0 else ""
    return (
        f'<figure><div class="fleet">{tiles}</div>'
        f"<figcaption>{escape(title + left)}</figcaption></figure>"
    )


def _tile(node: FilledNode) -> str:
    cpu, memory = resource_percent([node], CPU), resource_percent([node], MEMORY)
    price = (
        "no price"
        if node.price_micros_per_hour is None
        else hourly_price_text(node.price_micros_per_hour)
    )
    spaces = ", ".join(sorted({pod.namespace for pod in node.pods}))
    about = (
        f"{node.name or 'planned'}: {node.pool}, {node.zone}, {node.capacity_type.value}, "
        f"{price}/h; cpu {cpu} %, memory {memory} % requested; {counted(len(node.pods), 'pod')}"
        + (f" of {spaces}" if spaces else "")
    )
    return (
        f'<div class="node" title="{escape(about, quote=True)}"><b>{escape(node.instance_type)}</b>'
        f"<br>{escape(price)} · {counted(len(node.pods), 'pod')}"
        f"{_fill_bar(cpu, CPU)}{_fill_bar(memory, MEMORY)}</div>"
    )


def _fill_bar(share: int, name: str) -> str:
    kind = "fill memory" if name == MEMORY else "fill"
    return f'<span class="{kind}"><i style="width:{min(share, 100)}%"></i></span>'


def _part(micros: int, longest: int) -> str:
    return f"{100 * micros / longest:.2f}" if longest else "0"
