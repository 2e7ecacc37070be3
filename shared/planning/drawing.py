"""A plan as a picture: each node a square of cpu by memory, with what fills it along the diagonal.

A node's pods are drawn one workload after the other, each block as wide as its share of the cpu
and as high as its share of the memory. What is left free is right of and above the last corner:
a block that leans to one side says which resource the node runs out of first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from shared.model.pods import Pod
from shared.model.plan import Plan
from shared.model.quantity import format_cpu
from shared.model.resources import CPU, MEMORY, PODS, Resources
from shared.model.snapshot import ClusterSnapshot
from shared.planning.explanation import dollars

# Above this many nodes, identical ones share one picture.
_DRAWN_SINGLY: Final = 60
_MAX_CELLS: Final = 400
_PLOT: Final = 132
_CELL_WIDTH: Final = _PLOT + 26
_CELL_HEIGHT: Final = _PLOT + 74
_MARGIN: Final = 24
_HEADER: Final = 76
_LEGEND_ROW: Final = 20
_LEGEND_COLUMN: Final = 262
_MAX_LEGEND: Final = 24
# Tableau's ten, then the same lighter: neighbours differ also for most colour-blind people.
_COLOURS: Final = (
    *("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7"),
    *("#9c755f", "#2f4b7c", "#a0cbe8", "#ffbe7d", "#8cd17d", "#d4a6c8", "#d7b5a6", "#f1ce63"),
)
_DAEMONS: Final = "daemons"
_STANDING: Final = "pods that are there"
_GREY: Final[Mapping[str, str]] = {_DAEMONS: "#b8bec6", _STANDING: "#d5d9de"}
_DARK: Final = frozenset({"#4e79a7", "#59a14f", "#e15759", "#b07aa1", "#9c755f", "#2f4b7c"})
_GIB: Final = 2**30
_KEY: Final = "Each square is one node: cpu to the right, memory upwards."
_STYLE: Final = (
    "<style>text{font:10px system-ui,'DejaVu Sans',sans-serif;fill:#444}"
    ".head{font-size:16px;font-weight:600;fill:#111}.name{font-size:12px;font-weight:600;"
    "fill:#111}.fill{fill:#111}.room{fill:#f4f6f8;stroke:#8a94a0}"
    ".pods{stroke:#fff;stroke-width:.6}.light{fill:#fff;text-anchor:middle}"
    ".dark{fill:#222;text-anchor:middle}</style>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Pods of one workload on one node."""

    name: str
    count: int
    used: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """One node, or several identical ones."""

    title: str
    lines: tuple[str, ...]
    room: Resources
    blocks: tuple[_Block, ...]


def draw(snapshot: ClusterSnapshot, plan: Plan, caption: str) -> str:
    """Return the plan as an SVG document.

    Args:
        caption: One line under the totals, such as where the prices come from.
    """
    pods = {pod.uid: pod for pod in (*snapshot.pending, *snapshot.bound)}
    cells = Counter(_cells(snapshot, plan, pods))
    drawn = list(cells.elements()) if cells.total() <= _DRAWN_SINGLY else list(cells)
    left_out = len(drawn) - _MAX_CELLS
    drawn = drawn[:_MAX_CELLS]
    columns = max(1, min(10, len(drawn))) if len(drawn) <= 100 else 16
    width = max(_MARGIN * 2 + columns * _CELL_WIDTH, 760)
    sizes = Counter[str]()
    for cell in cells.elements():
        for block in cell.blocks:
            sizes[block.name] += block.count
    colours = _colours(sizes)
    rows = -(-len(drawn) // columns)
    parts = _header(plan, caption, left_out)
    for number, cell in enumerate(drawn):
        x = _MARGIN + number % columns * _CELL_WIDTH
        y = _HEADER + number // columns * _CELL_HEIGHT
        times = cells[cell] if cells.total() > _DRAWN_SINGLY else 1
        parts += _draw_cell(cell, times, colours, x, y)
    top = _HEADER + rows * _CELL_HEIGHT
    legend, height = _legend(sizes, colours, top, width)
    return "\n".join([*_frame(width, height), *parts, *legend, "</svg>", ""])


def _cells(snapshot: ClusterSnapshot, plan: Plan, pods: Mapping[str, Pod]) -> list[_Cell]:
    found = []
    for node in plan.nodes:
        key = node.options[0].offering
        price = dollars(node.price_micros_per_hour)
        blocks = _blocks([pods[ref.uid] for ref in node.pods])
        if node.daemon_requests:
            daemons = _Block(name=_DAEMONS, count=1, used=node.daemon_requests)
            blocks = (daemons, *blocks)
        found.append(
            _Cell(
                title=key.instance_type,
                lines=(f"{key.zone} {key.capacity_type.value}", f"{price}/h"),
                room=node.options[0].allocatable,
                blocks=blocks,
            )
        )
    nodes = {node.name: node for node in snapshot.nodes}
    for placement in plan.placements:
        standing = [pod for pod in snapshot.bound if pod.node_name == placement.node]
        used = Resources.total(pod.scheduling.requests for pod in standing)
        blocks = _blocks([pods[ref.uid] for ref in placement.pods])
        if standing:
            blocks = (_Block(name=_STANDING, count=len(standing), used=used), *blocks)
        room = nodes[placement.node].allocatable if placement.node in nodes else Resources()
        found.append(
            _Cell(title=placement.node, lines=("is there already",), room=room, blocks=blocks)
        )
    return found


def _blocks(pods: Sequence[Pod]) -> tuple[_Block, ...]:
    """Return the pods by workload, the largest first."""
    by_name: dict[str, list[Resources]] = {}
    for pod in pods:
        by_name.setdefault(workload_of(pod), []).append(pod.scheduling.requests)
    blocks = [
        _Block(name=name, count=len(many), used=Resources.total(many))
        for name, many in by_name.items()
    ]
    return tuple(sorted(blocks, key=lambda one: (-one.used[CPU], -one.used[MEMORY], one.name)))


def workload_of(pod: Pod) -> str:
    """Return the name people know a pod by: its controller's, else its own."""
    return f"{pod.namespace}/{pod.owner.name if pod.owner is not None else pod.name}"


def _colours(sizes: Counter[str]) -> dict[str, str]:
    """Return a colour per workload: those with the most pods first, so that they differ."""
    named = [name for name, _ in _by_size(sizes) if name not in _GREY]
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(named)}
    return {**colours, **_GREY}


def _by_size(sizes: Counter[str]) -> list[tuple[str, int]]:
    return sorted(sizes.items(), key=lambda one: (-one[1], one[0]))


def _header(plan: Plan, caption: str, left_out: int) -> list[str]:
    count = sum(len(node.pods) for node in plan.nodes)
    placed = sum(len(one.pods) for one in plan.placements)
    facts = [
        f"{len(plan.nodes)} new nodes for {count} pods",
        f"{dollars(plan.cost_micros_per_hour)}/h",
        f"lower bound {dollars(plan.lower_bound_micros_per_hour)}/h",
        f"gap {plan.gap_percent:.2f} %",
    ]
    if placed:
        facts.append(f"{placed} pods on nodes that are there")
    if plan.unschedulable:
        facts.append(f"{len(plan.unschedulable)} pods fit nothing")
    if left_out > 0:
        facts.append(f"{left_out} kinds of nodes not drawn")
    return [
        _text(_MARGIN, 32, " · ".join(facts), "head"),
        _text(_MARGIN, 52, f"{_KEY} {caption}"),
    ]


def _draw_cell(cell: _Cell, times: int, colours: Mapping[str, str], x: int, y: int) -> list[str]:
    used = Resources.total(block.used for block in cell.blocks)
    cpu, memory = _share(used, cell.room, CPU), _share(used, cell.room, MEMORY)
    title = f"{times} × {cell.title}" if times > 1 else cell.title
    size = f"{format_cpu(cell.room[CPU])} cpu, {cell.room[MEMORY] / _GIB:.1f} GiB"
    extra = "".join(
        f", {amount} {name.rpartition('/')[2]}"
        for name, amount in cell.room.items
        if "/" in name and amount
    )
    parts = [
        f"<g><title>{_safe(title)}: {_safe(size + extra)}</title>",
        _text(x, y + 11, _clip(title, 21), "name"),
        _text(x, y + 24, _clip(" · ".join(cell.lines), 30)),
        f'<rect x="{x}" y="{y + 30}" width="{_PLOT}" height="{_PLOT}" class="room"/>',
    ]
    left, bottom = float(x), float(y + 30 + _PLOT)
    for block in cell.blocks:
        wide = min(_PLOT * _share(block.used, cell.room, CPU), x + _PLOT - left)
        high = min(_PLOT * _share(block.used, cell.room, MEMORY), bottom - y - 30)
        bottom -= high
        parts += _draw_block(block, colours[block.name], (left, bottom, wide, high))
        left += wide
    parts.append(
        _text(x, y + 44 + _PLOT, f"cpu {cpu:.0%}, memory {memory:.0%}, {used[PODS]} pods", "fill")
    )
    return [*parts, _text(x, y + 57 + _PLOT, _clip(size + extra, 30)), "</g>"]


def _draw_block(block: _Block, colour: str, box: tuple[float, float, float, float]) -> list[str]:
    left, top, wide, high = box
    told = f"{block.count} × {block.name}: {block.used.to_quantities()}"
    place = f'x="{left:.1f}" y="{top:.1f}"'
    size = f'width="{max(wide, 0.6):.1f}" height="{max(high, 0.6):.1f}"'
    title = f"<title>{_safe(told)}</title>"
    parts = [f'<rect {place} {size} fill="{colour}" class="pods">{title}</rect>']
    label = str(block.count)
    if wide > 7 * len(label) + 2 and high > 11:
        style = "light" if colour in _DARK else "dark"
        parts.append(
            f'<text x="{left + wide / 2:.1f}" y="{top + high / 2 + 3.5:.1f}" class="{style}">'
            f"{label}</text>"
        )
    return parts


def _legend(
    sizes: Counter[str], colours: Mapping[str, str], top: int, width: int
) -> tuple[list[str], int]:
    listed = _by_size(sizes)
    shown = listed[:_MAX_LEGEND]
    columns = max(1, (width - 2 * _MARGIN) // _LEGEND_COLUMN)
    parts = []
    for number, (name, count) in enumerate(shown):
        x = _MARGIN + number % columns * _LEGEND_COLUMN
        y = top + 8 + number // columns * _LEGEND_ROW
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colours[name]}"/>')
        counted = "" if name == _DAEMONS else f" × {count}"
        parts.append(_text(x + 18, y + 10, _clip(name, 30) + counted))
    rows = -(-len(shown) // columns)
    bottom = top + 20 + rows * _LEGEND_ROW
    if len(listed) > len(shown):
        more = f"and {len(listed) - len(shown)} more workloads; colours repeat"
        parts.append(_text(_MARGIN, bottom + 4, more))
        bottom += _LEGEND_ROW
    return parts, bottom + _MARGIN // 2


def _frame(width: int, height: int) -> list[str]:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        _STYLE,
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]


def _share(used: Resources, room: Resources, name: str) -> float:
    return max(used[name], 0) / room[name] if room[name] > 0 else 0.0


def _text(x: int, y: int, content: str, style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text x="{x}" y="{y}"{named}>{_safe(content)}</text>'


def _clip(content: str, most: int) -> str:
    return content if len(content) <= most else f"{content[: most - 1]}…"


def _safe(content: str) -> str:
    """Return the text as XML takes it: names come from files and may hold anything."""
    return escape("".join(one if one.isprintable() else "?" for one in content))
