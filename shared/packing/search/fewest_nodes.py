"""Few, large nodes: the result of schedulers that place one pod at a time.

Pods are placed by falling size, each on the emptiest node (by pods) that some bin type could still
hold; only then is the cheapest bin type chosen. Good in small batches, where one large node is hard
to beat, and a guarantee that no plan costs more than such a scheduler's.
"""

from collections.abc import Sequence

from shared.packing.priced_problem import Pattern, PricedProblem


class _OpenNode:
    """A node being filled, and the bin types that could still hold it."""

    def __init__(self, number: int, bin_types: list[int], size: int) -> None:
        self.number = number
        self.bin_types = bin_types
        self.used = [0] * size
        self.pods = 0
        self.contents: dict[int, int] = {}


def fewest_nodes(
    priced: PricedProblem, counts: Sequence[int], largest: Sequence[int]
) -> list[Pattern]:
    """Return a plan of few nodes. Each class counted must fit some bin type.

    Args:
        priced: Classes and bin types.
        counts: Pods per class.
        largest: What `largest_bin_types` returns.
    """
    demand = priced.demand
    order = sorted(
        (k for k, count in enumerate(counts) if count),
        key=lambda k: (-priced.cpu[k], -priced.memory[k], k),
    )
    open_nodes: list[_OpenNode] = []
    for k in order:
        needs = demand.amounts(k)
        bit = 1 << demand.signature[k]
        usable = [t for t in largest if priced.bin_types[t].signatures & bit]
        left = counts[k]
        while left:
            left -= _place_some(priced, open_nodes, needs, usable, (k, left))
    patterns = []
    for node in open_nodes:
        contents = tuple(sorted(node.contents.items()))
        needs_all, signatures = priced.needs(contents)
        patterns.append(Pattern(bin_type=priced.cheapest(needs_all, signatures), contents=contents))
    return patterns


def largest_bin_types(priced: PricedProblem) -> list[int]:
    """Return the bin types that no other exceeds in everything: what fits any fits one of them."""
    found: list[int] = []
    for t in sorted(
        range(len(priced.bin_types)), key=lambda t: (-sum(priced.bin_types[t].allocatable), t)
    ):
        bin_type = priced.bin_types[t]
        if not any(
            not bin_type.signatures & ~priced.bin_types[o].signatures
            and all(
                a >= b
                for a, b in zip(priced.bin_types[o].allocatable, bin_type.allocatable, strict=True)
            )
            for o in found
        ):
            found.append(t)
    return found


def _place_some(
    priced: PricedProblem,
    open_nodes: list[_OpenNode],
    needs: list[tuple[int, int]],
    usable: list[int],
    wanted: tuple[int, int],
) -> int:
    """Put some pods of a class on the emptiest node that takes them; return how many."""
    k, left = wanted
    open_nodes.sort(key=lambda node: (node.pods, node.number))
    allowed = set(usable)
    for position, node in enumerate(open_nodes):
        later = open_nodes[position + 1].pods if position + 1 < len(open_nodes) else None
        # The node stays the emptiest until it has more pods than the next one.
        quota = left if later is None else max(later - node.pods, 0) + 1
        fits = [(_room_for(priced, t, node.used, needs), t) for t in node.bin_types if t in allowed]
        most = max((n for n, _ in fits), default=0)
        n = min(quota, most, left)
        if n:
            _add_pods(node, fits, needs, (k, n))
            return n
    node = _OpenNode(len(open_nodes), usable, len(priced.demand.names))
    fits = [(_room_for(priced, t, node.used, needs), t) for t in usable]
    n = min(max(many for many, _ in fits), left)
    _add_pods(node, fits, needs, (k, n))
    open_nodes.append(node)
    return n


def _add_pods(
    node: _OpenNode,
    fits: list[tuple[int, int]],
    needs: list[tuple[int, int]],
    added: tuple[int, int],
) -> None:
    k, n = added
    node.bin_types = [t for many, t in fits if many >= n]
    node.pods += n
    node.contents[k] = node.contents.get(k, 0) + n
    for place, amount in needs:
        node.used[place] += amount * n


def _room_for(
    priced: PricedProblem, bin_type: int, used: list[int], needs: list[tuple[int, int]]
) -> int:
    allocatable = priced.bin_types[bin_type].allocatable
    return min([(allocatable[place] - used[place]) // amount for place, amount in needs], default=1)
