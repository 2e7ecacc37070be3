"""A plan as a picture: a grid of its nodes with what fills them, a legend, the totals."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from functions.cli.plan.gap_in_words import gap
from functions.cli.plan.svg_node import (
    CELL_HEIGHT,
    CELL_WIDTH,
    DAEMONS,
    STYLE,
    Block,
    NodeCell,
    clip,
    draw_cell,
    text,
)
from shared.model.dollars_and_counts import counted, dollars
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.resources import CPU, MEMORY, Resources
from shared.model.snapshot import ClusterSnapshot

# Above this many nodes, identical ones share one cell.
_DRAWN_SINGLY: Final = 60
_MAX_CELLS: Final = 400
_MARGIN: Final = 24
_HEADER: Final = 76
_LEGEND_ROW: Final = 20
_LEGEND_COLUMN: Final = 262
_MAX_LEGEND: Final = 24
# Twenty-four colours that differ from their neighbours, also for most colour-blind people.
_COLOURS: Final = (
    *("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7"),
    *("#9c755f", "#2f4b7c", "#a0cbe8", "#ffbe7d", "#8cd17d", "#d4a6c8", "#d7b5a6", "#b6992d"),
    *("#499894", "#86bcb6", "#d37295", "#79706e", "#6b4c9a", "#c0392b", "#1b7837", "#b3cde3"),
)
_ALREADY_RUNNING: Final = "pods that are there"
_THERE: Final = "is there already"
_GREY: Final[Mapping[str, str]] = {DAEMONS: "#b8bec6", _ALREADY_RUNNING: "#d5d9de"}
_KEY: Final = "Each square is one node: its cpu to the right, its memory upwards; white is free."


def draw_plan(snapshot: ClusterSnapshot, plan: Plan, caption: str) -> str:
    """Return the plan as an SVG document; if it launches and places nothing, what runs now.

    Args:
        caption: One line under the totals, such as where the prices come from.
    """
    pods = {pod.uid: pod for pod in (*snapshot.pending, *snapshot.bound)}
    cells = _cells(snapshot, plan, pods)
    drawn = list(_labelled(cells, len(plan.nodes)))
    left_out = len(drawn) - _MAX_CELLS
    drawn = drawn[:_MAX_CELLS]
    columns = max(1, min(8, len(drawn))) if len(drawn) <= 100 else 14
    width = max(_MARGIN * 2 + columns * CELL_WIDTH, 760)
    sizes = Counter[str]()
    for cell in cells:
        for block in cell.blocks:
            sizes[block.name] += block.count
    colours = _colours(sizes)
    rows = -(-len(drawn) // columns)
    parts = _header(plan, caption, left_out, _running(snapshot))
    for number, (cell, label) in enumerate(drawn):
        x = _MARGIN + number % columns * CELL_WIDTH
        y = _HEADER + number // columns * CELL_HEIGHT
        parts += draw_cell(cell, label, colours, x, y)
    top = _HEADER + rows * CELL_HEIGHT
    legend, height = _legend(sizes, colours, top, width)
    return "\n".join([*_frame(width, height), *parts, *legend, "</svg>", ""])


def _labelled(cells: Sequence[NodeCell], new: int) -> Iterator[tuple[NodeCell, str]]:
    """Yield equal cells one after the other, each with what stands before its title.

    That is the number of a new node, as in the table of the plan; where there are many nodes, equal
    ones are one cell, and it is how many there are.

    Args:
        new: The number of new nodes, whose cells come first.
    """
    numbers: dict[NodeCell, list[int]] = {}
    for number, cell in enumerate(cells, 1):
        numbers.setdefault(cell, []).append(number)
    for cell, alike in numbers.items():
        if len(cells) > _DRAWN_SINGLY:
            yield cell, f"{len(alike)} × " if len(alike) > 1 else ""
        else:
            yield from ((cell, f"{number}: " if number <= new else "") for number in alike)


def _cells(snapshot: ClusterSnapshot, plan: Plan, pods: Mapping[str, Pod]) -> list[NodeCell]:
    found = []
    for node in plan.nodes:
        key = node.options[0].offering
        price = dollars(node.price_micros_per_hour)
        blocks = _blocks([pods[ref.uid] for ref in node.pods])
        if node.daemon_requests:
            daemons = Block(name=DAEMONS, count=1, used=node.daemon_requests)
            blocks = (daemons, *blocks)
        found.append(
            NodeCell(
                title=key.instance_type,
                line=f"{key.zone} {key.capacity_type.value} {price}",
                allocatable=node.options[0].allocatable,
                blocks=blocks,
            )
        )
    allocatable_of = {node.name: node.allocatable for node in snapshot.nodes}
    on_node: dict[str, list[Pod]] = {}
    for pod in snapshot.bound:
        on_node.setdefault(pod.node_name, []).append(pod)
    running = {name: pods for name, pods in sorted(on_node.items()) if name in allocatable_of}
    if not plan.nodes and not plan.placements:
        return [
            NodeCell(
                title=name, line=_THERE, allocatable=allocatable_of[name], blocks=_blocks(standing)
            )
            for name, standing in running.items()
        ]
    for placement in plan.placements:
        standing = on_node.get(placement.node, [])
        used = Resources.total(pod.scheduling.requests for pod in standing)
        blocks = _blocks([pods[ref.uid] for ref in placement.pods])
        if standing:
            blocks = (Block(name=_ALREADY_RUNNING, count=len(standing), used=used), *blocks)
        allocatable = allocatable_of.get(placement.node, Resources())
        found.append(
            NodeCell(title=placement.node, line=_THERE, allocatable=allocatable, blocks=blocks)
        )
    return found


def _blocks(pods: Sequence[Pod]) -> tuple[Block, ...]:
    """Return the pods by workload, the largest first."""
    by_name: dict[str, list[Resources]] = {}
    for pod in pods:
        by_name.setdefault(workload_of(pod), []).append(pod.scheduling.requests)
    blocks = [
        Block(name=name, count=len(many), used=Resources.total(many))
        for name, many in by_name.items()
    ]
    return tuple(
        sorted(blocks, key=lambda block: (-block.used[CPU], -block.used[MEMORY], block.name))
    )


def workload_of(pod: Pod) -> str:
    """Return the name people know a pod by: its controller's, else its own.

    Of a ReplicaSet it is the Deployment's: the hash of its pod template is left out.
    """
    name = pod.owner.name if pod.owner is not None else pod.name
    template = pod.labels.get("pod-template-hash", "")
    return f"{pod.namespace}/{name.removesuffix(f'-{template}') if template else name}"


def _colours(sizes: Counter[str]) -> dict[str, str]:
    """Return a colour per workload: those with the most pods first, so that they differ."""
    named = [name for name, _ in _by_size(sizes) if name not in _GREY]
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(named)}
    return {**colours, **_GREY}


def _by_size(sizes: Counter[str]) -> list[tuple[str, int]]:
    return sorted(sizes.items(), key=lambda siz: (-siz[1], siz[0]))


def _running(snapshot: ClusterSnapshot) -> str:
    names = {node.name for node in snapshot.nodes}
    pods = sum(pod.node_name in names for pod in snapshot.bound)
    return f"{counted(pods, 'pod')} on {counted(len(names), 'node')}, nothing to launch"


def _header(plan: Plan, caption: str, left_out: int, running: str) -> list[str]:
    count = sum(len(node.pods) for node in plan.nodes)
    placed = sum(len(placement.pods) for placement in plan.placements)
    facts = [
        f"{counted(len(plan.nodes), 'new node')} for {counted(count, 'pod')}",
        f"{dollars(plan.cost_micros_per_hour)}/h",
        f"lower bound {dollars(plan.lower_bound_micros_per_hour)}/h",
        gap(plan),
    ]
    if not (count or placed or plan.unschedulable):
        facts = [running]
    if placed:
        facts.append(f"{counted(placed, 'pod')} on nodes that are there")
    if plan.unschedulable:
        facts.append(f"{counted(len(plan.unschedulable), 'pod')} without a place")
    if left_out > 0:
        facts.append(f"{left_out} kinds of nodes not drawn")
    return [
        text(_MARGIN, 32, " · ".join(facts), "head"),
        text(_MARGIN, 52, f"{_KEY} {caption}"),
    ]


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
        times = "" if name == DAEMONS else f" × {count}"
        parts.append(text(x + 18, y + 10, clip(name, 30) + times))
    rows = -(-len(shown) // columns)
    bottom = top + 20 + rows * _LEGEND_ROW
    if len(listed) > len(shown):
        more = f"and {len(listed) - len(shown)} more workloads; colours repeat"
        parts.append(text(_MARGIN, bottom + 4, more))
        bottom += _LEGEND_ROW
    return parts, bottom + _MARGIN // 2


def _frame(width: int, height: int) -> list[str]:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        STYLE,
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
