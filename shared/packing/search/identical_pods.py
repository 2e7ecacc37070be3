"""Pods of one size: the exact answer, by dynamic programming over how many are covered."""

from typing import Final

from shared.packing.priced_problem import Planned, PricedProblem

_WORK: Final = 200_000


def cover_identical(priced: PricedProblem, index: int, count: int) -> list[Planned] | None:
    """Return the cheapest nodes for `count` pods of one class, or None when that takes too long.

    least(n), the least price of room for n pods, is the least over kinds of
    price + least(n - pods per node).
    """
    per_node: dict[int, tuple[int, int]] = {}
    for kind in priced.by_price:
        fit = _fitting(priced, kind, index, count)
        price = priced.prices[kind]
        if fit and not any(many >= fit for many in per_node):
            per_node[fit] = (price, kind)
    if not per_node or count * len(per_node) > _WORK:
        return None
    ways = sorted(per_node.items())
    least, chosen = [0], [0]
    for n in range(1, count + 1):
        best, number = -1, 0
        for at, (fit, (price, _)) in enumerate(ways):
            total = price + least[n - fit] if n > fit else price
            if best < 0 or total < best:
                best, number = total, at
        least.append(best)
        chosen.append(number)
    nodes: dict[tuple[int, int], int] = {}
    n = count
    while n:
        fit, (_, kind) = ways[chosen[n]]
        key = (kind, min(fit, n))
        nodes[key] = nodes.get(key, 0) + 1
        n -= key[1]
    return [
        Planned(kind=kind, contents=((index, fit),), copies=copies)
        for (kind, fit), copies in sorted(nodes.items())
    ]


def _fitting(priced: PricedProblem, kind: int, index: int, most: int) -> int:
    one, demand = priced.kinds[kind], priced.demand
    if not one.signatures >> demand.signature[index] & 1:
        return 0
    return min([one.room[place] // amount for place, amount in demand.amounts(index)], default=most)
