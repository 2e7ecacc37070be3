"""One node as a square of SVG: cpu to the right, memory upwards.

Workloads follow each other along the diagonal, each block as wide as its share of the cpu and as
high as its share of the memory. Its pale bands run down to the cpu axis and left to the memory
axis, so that both axes read as stacked bars. The blank strips at the right and at the top are
what is left free.
"""

from collections.abc import Mapping
from html import escape
from typing import Final

from msgspec import Struct

from functions.cli.printable_text import printable
from shared.model.dollars_and_counts import counted
from shared.model.quantity import format_cpu
from shared.model.resources import CPU, MEMORY, Resources

PLOT: Final = 150
CELL_WIDTH: Final = PLOT + 36
CELL_HEIGHT: Final = PLOT + 74
DAEMONS: Final = "daemons"
STYLE: Final = (
    "<style>text{font:10px system-ui,'DejaVu Sans',sans-serif;fill:#444}"
    ".head{font-size:16px;font-weight:600;fill:#111}.name{font-size:12px;font-weight:600;"
    "fill:#111}.fill{fill:#111}.room{fill:#fff;stroke:#8a94a0}.band{opacity:.4}"
    ".light{fill:#fff;text-anchor:middle}.dark{fill:#222;text-anchor:middle}</style>"
)
_TOP: Final = 30
_GIB: Final = 2**30
# Characters of a line that fit into a cell.
_TITLE: Final = 22
_LINE: Final = 31


class Block(Struct, frozen=True, kw_only=True):
    """Pods of one workload on one node."""

    name: str
    count: int
    used: Resources


class NodeCell(Struct, frozen=True, kw_only=True):
    """One node, or several identical ones.

    Attributes:
        line: The line under the title.
        allocatable: What pods and daemons can use.
        blocks: In the order they are drawn.
    """

    title: str
    line: str
    allocatable: Resources
    blocks: tuple[Block, ...]


def draw_cell(cell: NodeCell, label: str, colours: Mapping[str, str], x: int, y: int) -> list[str]:
    """Return the elements of a node whose upper left corner is at x, y.

    Args:
        label: What stands before the title: the number of the node, or how many there are.
        colours: By name of block.
    """
    used = Resources.total(block.used for block in cell.blocks)
    pods = sum(block.count for block in cell.blocks if block.name != DAEMONS)
    cpu, memory = (_share(used, cell.allocatable, name) for name in (CPU, MEMORY))
    fill = f"cpu {cpu:.0%}, memory {memory:.0%}"
    size = f"{format_cpu(cell.allocatable[CPU])} cpu, {cell.allocatable[MEMORY] / _GIB:.1f} GiB"
    others = [f", {v} {k.rpartition('/')[2]}" for k, v in cell.allocatable.items if "/" in k]
    whole = size + "".join(others)
    title = f"{label}{cell.title}"
    parts = [
        f"<g><title>{safe(title)}: {safe(whole)}</title>",
        text(x, y + 11, clip(title, _TITLE), "name"),
        text(x, y + 24, clip(cell.line, _LINE)),
        f'<rect x="{x}" y="{y + _TOP}" width="{PLOT}" height="{PLOT}" class="room"/>',
    ]
    across = up = 0.0
    for block in cell.blocks:
        wide = min(PLOT * _share(block.used, cell.allocatable, CPU), PLOT - across)
        high = min(PLOT * _share(block.used, cell.allocatable, MEMORY), PLOT - up)
        parts += _draw_block(block, colours[block.name], x, y + _TOP, (across, up, wide, high))
        across, up = across + wide, up + high
    return [
        *parts,
        text(x, y + _TOP + PLOT + 14, f"{fill}, {counted(pods, 'pod')}", "fill"),
        text(x, y + _TOP + PLOT + 27, clip(whole, _LINE)),
        "</g>",
    ]


def text(x: int, y: int, content: str, style: str = "") -> str:
    """Return a line of text with its base line at x, y."""
    named = f' class="{style}"' if style else ""
    return f'<text x="{x}" y="{y}"{named}>{safe(content)}</text>'


def clip(content: str, most: int) -> str:
    """Return the text, cut where it would be too long."""
    return content if len(content) <= most else f"{content[: most - 1]}…"


def safe(content: str) -> str:
    """Return the text as XML takes it: names come from files and may hold anything."""
    return escape(printable(content))


def _draw_block(
    block: Block, colour: str, x: int, y: int, box: tuple[float, float, float, float]
) -> list[str]:
    """Return a block and its bands.

    Args:
        box: Offset to the right and upwards from the lower left corner, width, height.
    """
    across, up, wide, high = box
    left, top = x + across, y + PLOT - up - high
    used = ", ".join(f"{name} {amount}" for name, amount in block.used.to_quantities().items())
    label_text = f"{block.count} × {block.name}: {used}"
    parts = [
        f'<g fill="{colour}"><title>{safe(label_text)}</title>',
        _rect(left, top + high, wide, up, "band"),
        _rect(x, top, across, high, "band"),
        _rect(left, top, max(wide, 0.7), max(high, 0.7)),
        "</g>",
    ]
    label = str(block.count)
    if wide > 7 * len(label) + 2 and high > 11:
        style = "light" if _is_dark(colour) else "dark"
        at = f'x="{left + wide / 2:.1f}" y="{top + high / 2 + 3.5:.1f}"'
        parts.append(f'<text {at} class="{style}">{label}</text>')
    return parts


def _rect(x: float, y: float, wide: float, high: float, style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"{named}/>'


def _is_dark(colour: str) -> bool:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 150


def _share(used: Resources, allocatable: Resources, name: str) -> float:
    return max(used[name], 0) / allocatable[name] if allocatable[name] > 0 else 0.0
