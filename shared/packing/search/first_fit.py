"""The first-fit packer: first fit on bins, then for each class the node type cheapest for it.

Its plans are expensive, but it is short enough to verify by reading. It is the fallback when the
checker refuses a plan, and a candidate where pods are left out.
"""

from collections.abc import Mapping

from shared.model.resources import Resources
from shared.packing.problem import (
    LIMIT,
    NO_NODE_TYPE,
    ItemClass,
    NodeType,
    PackedNode,
    Packing,
    PackingProblem,
)


class _OpenBin:
    """A node or bin being filled: index of its node type or bin, and what is available on it."""

    def __init__(self, number: int, type_index: int, available: Resources) -> None:
        self.number = number
        self.type_index = type_index
        self.available = dict(available.items)
        self.contents: dict[int, int] = {}

    def add(self, index: int, pod_class: ItemClass, most: int) -> int:
        """Take as many pods as fit, at most `most`; return how many."""
        count = min(_fitting(pod_class.requests, self.available), most)
        if count:
            for name, amount in pod_class.requests.items:
                self.available[name] = self.available.get(name, 0) - amount * count
            self.contents[index] = self.contents.get(index, 0) + count
        return count


def pack_first_fit(problem: PackingProblem, allowed: frozenset[int]) -> Packing:
    """Return a plan that places what can be placed, without looking for a good one.

    Args:
        problem: What to pack.
        allowed: Node types within the cap on node size.
    """
    left = {name: dict(amounts.items) for name, amounts in problem.limits.items()}
    bins = [_OpenBin(i, i, free) for i, free in enumerate(problem.bins)]
    nodes: list[_OpenBin] = []
    allocatable = {
        number: dict(problem.node_types[number].allocatable.items) for number in sorted(allowed)
    }
    unplaced = []
    order = sorted(
        range(len(problem.classes)), key=lambda k: (_size(problem.classes[k]), -k), reverse=True
    )
    for index in order:
        item_class = problem.classes[index]
        count = item_class.count
        for node in bins:
            if count and problem.compatible_bins[index] >> node.type_index & 1:
                count -= node.add(index, item_class, count)
        for node in nodes:
            if count and problem.compatible[index] >> node.type_index & 1:
                count -= node.add(index, item_class, count)
        count, reason = _buy(problem, index, count, allocatable, nodes, left)
        if count:
            unplaced.append((index, count, reason))
    bought = tuple(_packed(problem, node) for node in nodes)
    return Packing(
        nodes=bought,
        placements=tuple((n.number, tuple(sorted(n.contents.items()))) for n in bins if n.contents),
        unplaced=tuple(sorted(unplaced)),
        cost_micros_per_hour=sum(
            problem.node_types[n.node_type].offerings[n.options[0][1]].price_micros_per_hour
            for n in bought
        ),
        lower_bound_micros_per_hour=0,
        candidate="simple",
    )


def _buy(
    problem: PackingProblem,
    index: int,
    count: int,
    allocatable: Mapping[int, Mapping[str, int]],
    nodes: list[_OpenBin],
    left: dict[str, dict[str, int]],
) -> tuple[int, str]:
    """Open nodes for a class; return how many pods are left and why."""
    item_class = problem.classes[index]
    fits = {
        number: _fitting(item_class.requests, amounts)
        for number, amounts in (allocatable.items() if count else ())
        if problem.compatible[index] >> number & 1
    }
    reason = NO_NODE_TYPE
    while count:
        best: tuple[int, int] | None = None
        for number, most in fits.items():
            node_type = problem.node_types[number]
            per_node = min(most, count)
            if not per_node:
                continue
            if not _within(node_type, left.get(node_type.provisioner)):
                reason = LIMIT
                continue
            cost = -(-count // per_node) * node_type.offerings[0].price_micros_per_hour
            if best is None or cost < best[0]:
                best = (cost, number)
        if best is None:
            return count, reason
        node_type = problem.node_types[best[1]]
        node = _OpenBin(len(nodes), best[1], node_type.allocatable)
        count -= node.add(index, item_class, count)
        nodes.append(node)
        _reserve(node_type, left.get(node_type.provisioner))
    return 0, ""


def _packed(problem: PackingProblem, node: _OpenBin) -> PackedNode:
    offerings = problem.node_types[node.type_index].offerings
    settings = problem.settings
    top = offerings[0].price_micros_per_hour * (100 + settings.option_price_ceiling_percent)
    options = [
        (node.type_index, number)
        for number, offering in enumerate(offerings)
        if offering.capacity_type == offerings[0].capacity_type
        and offering.price_micros_per_hour * 100 <= top
    ]
    return PackedNode(
        node_type=node.type_index,
        contents=tuple(sorted(node.contents.items())),
        options=tuple(options[: settings.max_options]),
    )


def _fitting(requests: Resources, available: Mapping[str, int]) -> int:
    counts = [
        max(available.get(name, 0), 0) // amount for name, amount in requests.items if amount > 0
    ]
    return min(counts, default=1 << 30)


def _within(node_type: NodeType, left: dict[str, int] | None) -> bool:
    return left is None or all(
        node_type.capacity[name] <= max(amount, 0) for name, amount in left.items()
    )


def _reserve(node_type: NodeType, left: dict[str, int] | None) -> None:
    for name in left or ():
        assert left is not None
        left[name] -= node_type.capacity[name]


def _size(pod_class: ItemClass) -> tuple[int, ...]:
    return (pod_class.requests["cpu"], pod_class.requests["memory"])
