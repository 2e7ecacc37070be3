"""The plain packer: first fit on bins, then for each class the shape that is cheapest for it.

Its plans are expensive, but it is short enough to verify by reading. It is the fallback when the
checker refuses a plan, and a candidate where pods are left out.
"""

from collections.abc import Mapping

from shared.model.resources import Resources
from shared.packing.problem import (
    LIMIT,
    NO_SHAPE,
    PackedNode,
    Packing,
    PackingProblem,
    PodClass,
    Shape,
)


class _Node:
    """A node being filled: a shape (negative: a bin) and the room left."""

    def __init__(self, number: int, mask_place: int, room: Resources) -> None:
        self.number = number
        self.mask_place = mask_place
        self.room = dict(room.items)
        self.contents: dict[int, int] = {}

    def add(self, index: int, pod_class: PodClass, most: int) -> int:
        """Take as many pods as fit, at most `most`; return how many."""
        count = min(_fitting(pod_class.requests, self.room), most)
        if count:
            for name, amount in pod_class.requests.items:
                self.room[name] = self.room.get(name, 0) - amount * count
            self.contents[index] = self.contents.get(index, 0) + count
        return count


def pack_simply(problem: PackingProblem, allowed: frozenset[int]) -> Packing:
    """Return a plan that places what can be placed, without looking for a good one.

    Args:
        problem: What to pack.
        allowed: Shapes within the cap on node size.
    """
    left = {name: dict(room.items) for name, room in problem.limits.items()}
    bins = [_Node(i, i, free) for i, free in enumerate(problem.bins)]
    nodes: list[_Node] = []
    rooms = {number: dict(problem.shapes[number].allocatable.items) for number in sorted(allowed)}
    unplaced = []
    order = sorted(
        range(len(problem.classes)), key=lambda k: (_size(problem.classes[k]), -k), reverse=True
    )
    for index in order:
        one = problem.classes[index]
        count = one.count
        for node in bins:
            if count and problem.compatible_bins[index] >> node.mask_place & 1:
                count -= node.add(index, one, count)
        for node in nodes:
            if count and problem.compatible[index] >> node.mask_place & 1:
                count -= node.add(index, one, count)
        count, reason = _buy(problem, index, count, rooms, nodes, left)
        if count:
            unplaced.append((index, count, reason))
    bought = tuple(_packed(problem, node) for node in nodes)
    return Packing(
        nodes=bought,
        placements=tuple((n.number, tuple(sorted(n.contents.items()))) for n in bins if n.contents),
        unplaced=tuple(sorted(unplaced)),
        cost_micros_per_hour=sum(
            problem.shapes[n.shape].pools[n.options[0][1]].price_micros_per_hour for n in bought
        ),
        lower_bound_micros_per_hour=0,
        candidate="simple",
    )


def _buy(
    problem: PackingProblem,
    index: int,
    count: int,
    rooms: Mapping[int, Mapping[str, int]],
    nodes: list[_Node],
    left: dict[str, dict[str, int]],
) -> tuple[int, str]:
    """Open nodes for a class; return how many pods are left and why."""
    one = problem.classes[index]
    fits = {
        number: _fitting(one.requests, room)
        for number, room in (rooms.items() if count else ())
        if problem.compatible[index] >> number & 1
    }
    reason = NO_SHAPE
    while count:
        best: tuple[int, int] | None = None
        for number, most in fits.items():
            shape = problem.shapes[number]
            per_node = min(most, count)
            if not per_node:
                continue
            if not _within(shape, left.get(shape.provisioner)):
                reason = LIMIT
                continue
            cost = -(-count // per_node) * shape.pools[0].price_micros_per_hour
            if best is None or cost < best[0]:
                best = (cost, number)
        if best is None:
            return count, reason
        shape = problem.shapes[best[1]]
        node = _Node(len(nodes), best[1], shape.allocatable)
        count -= node.add(index, one, count)
        nodes.append(node)
        _reserve(shape, left.get(shape.provisioner))
    return 0, ""


def _packed(problem: PackingProblem, node: _Node) -> PackedNode:
    pools = problem.shapes[node.mask_place].pools
    settings = problem.settings
    top = pools[0].price_micros_per_hour * (100 + settings.option_price_ceiling_percent)
    options = [
        (node.mask_place, number)
        for number, pool in enumerate(pools)
        if pool.capacity_type == pools[0].capacity_type and pool.price_micros_per_hour * 100 <= top
    ]
    return PackedNode(
        shape=node.mask_place,
        contents=tuple(sorted(node.contents.items())),
        options=tuple(options[: settings.max_options]),
    )


def _fitting(requests: Resources, room: Mapping[str, int]) -> int:
    counts = [max(room.get(name, 0), 0) // amount for name, amount in requests.items if amount > 0]
    return min(counts, default=1 << 30)


def _within(shape: Shape, left: dict[str, int] | None) -> bool:
    return left is None or all(
        shape.capacity[name] <= max(amount, 0) for name, amount in left.items()
    )


def _reserve(shape: Shape, left: dict[str, int] | None) -> None:
    for name in left or ():
        assert left is not None
        left[name] -= shape.capacity[name]


def _size(pod_class: PodClass) -> tuple[int, ...]:
    return (pod_class.requests["cpu"], pod_class.requests["memory"])
