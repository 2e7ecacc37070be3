"""Identical pods: the exact solution, by dynamic programming over how many are covered."""

from typing import Final

from shared.packing.priced_problem import Pattern, PricedProblem

_WORK: Final = 200_000


def cover_identical(priced: PricedProblem, index: int, count: int) -> list[Pattern] | None:
    """Return the cheapest nodes for `count` pods of one class, or None when that takes too long.

    least(n), the minimum price of nodes for n pods, is the minimum over bin types of price +
    least(n - pods per node).
    """
    per_node: dict[int, tuple[int, int]] = {}
    for bin_type in priced.by_price:
        fit = _fitting(priced, bin_type, index, count)
        price = priced.prices[bin_type]
        if fit and not any(many >= fit for many in per_node):
            per_node[fit] = (price, bin_type)
    if not per_node or count * len(per_node) > _WORK:
        return None
    choices = sorted(per_node.items())
    least, chosen = [0], [0]
    for n in range(1, count + 1):
        best, number = -1, 0
        for at, (fit, (price, _)) in enumerate(choices):
            total = price + least[n - fit] if n > fit else price
            if best < 0 or total < best:
                best, number = total, at
        least.append(best)
        chosen.append(number)
    nodes: dict[tuple[int, int], int] = {}
    n = count
    while n:
        fit, (_, bin_type) = choices[chosen[n]]
        key = (bin_type, min(fit, n))
        nodes[key] = nodes.get(key, 0) + 1
        n -= key[1]
    return [
        Pattern(bin_type=bin_type, contents=((index, fit),), copies=copies)
        for (bin_type, fit), copies in sorted(nodes.items())
    ]


def _fitting(priced: PricedProblem, bin_type: int, index: int, most: int) -> int:
    entry, demand = priced.bin_types[bin_type], priced.demand
    if not entry.signatures >> demand.signature[index] & 1:
        return 0
    return min(
        [entry.allocatable[place] // amount for place, amount in demand.amounts(index)],
        default=most,
    )
